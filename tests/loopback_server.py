"""A real HTTP server on this machine that answers as scripted and keeps what it was asked."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Scripted:
    """Answers `script` in order, the last one again and again. Each is data, (status, data[, headers]), raw bytes, or
    a function of the request's JSON that gives one of these. `asked` holds (path, body, headers)."""

    def __init__(self, *script):
        self.script = list(script)
        self.asked = []

    @property
    def bodies(self):
        return [body for _, body, _ in self.asked]

    def next_answer(self, body):
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return answer(body) if callable(answer) else answer


@contextmanager
def serving(*script):
    """The scripted server and its address."""
    scripted = Scripted(*script)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            scripted.asked.append((self.path, body, dict(self.headers)))
            answer = scripted.next_answer(body)
            if callable(answer):
                answer(self)
                return
            status, data, headers = (200, answer, {}) if not isinstance(answer, tuple) else (*answer, {})[:3]
            content = data if isinstance(data, bytes) else json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield scripted, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def completion(content="{}", finish="stop", **message):
    """A chat completion of one choice."""
    return {
        "model": "served",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
        ],
    }


def error(status, message="no", **more):
    """An error in OpenAI's form."""
    return status, {"error": {"message": message, **more}}

"""One judge on a port: the wires of Ollama and OpenAI, and its own /v1/score.

app        routes, guard, start and stop        scheduler  one thread owns the judge; a bounded queue
guard      who may ask, and how much            working    what that thread does
seat       the benchmark's prompt, recognised   schema_slots, slot_writer  a client's JSON schema as slots
answering  a chat -> a whole answer             *_wire     how a client says it
upstream   models that are not served here      prefix_file  the evaluated rubric, kept on disk
assembly   a judge with its thread              running      ... on a port, until it is told to stop
"""

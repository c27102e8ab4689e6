"""Why a dialogue ended, in a sentence with its figures."""

from __future__ import annotations

from .evaluate import Evaluation
from .parameters import Parameters
from .stop import UNFINISHED, rules, total_and_net_change


def reason(evaluation: Evaluation, n: int, parameters: Parameters, *, every: int = 1) -> str:
    """The sentence for dialogue `n` of an evaluation."""
    path, t = evaluation.paths.only(n), int(evaluation.stops.rating[n])
    radius, start = path.radius[0, t], path.radius[0, 0]
    energy, reach = path.energy[0, t], parameters.tolerance * start
    gate = f"energy {energy:.2f} of {start:.2f}"
    match evaluation.stops.kind[n]:
        case "success_geometric":
            return f"{radius:.2f} from the origin, within {reach:.2f}; {gate}"
        case "success_positional":
            return f"projection {path.projection[0, t]:.2f}, at or past {-reach:.2f}; {gate}"
        case "success_aligned":
            return f"mean alignment above {parameters.tau_align}; {gate}"
        case "collapse":
            also = " (and regressing)" if rules(path, parameters, every=every)["regressing"][0, t] else ""
            return f"the last {parameters.collapse_window} ratings all lost energy{also}"
        case "regression":
            last = path.gain[0, t - parameters.regression_window + 1 : t + 1]
            return f"no movement, and {(last < 0).sum()} losses in the last {parameters.regression_window} ratings"
        case "oscillation":
            window = max(parameters.oscillation_least_window, parameters.oscillation_window // every)
            change, net = (float(a[0, t]) for a in total_and_net_change(path, window))
            return f"{change:.0f} points of change over {window} ratings, a net {net:.0f}"
        case "timeout":
            return f"turn {parameters.max_turns} without success; {gate}"
    assert evaluation.stops.kind[n] == UNFINISHED
    return f"the dialogue ends before any rule holds; {gate}"

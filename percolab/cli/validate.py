"""percolab validate: whether this installation can be trusted."""

from __future__ import annotations

import math
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from percolab.cli.groups import Command
from percolab.cli.options import WholeNumber, as_json, echo_json
from percolab.cli.terminal import echo

if TYPE_CHECKING:
    from percolab.validation.check import Conditions, Outcome


_ROW = "  {:<62} {:>14} {:>14} {:>9} {:>6}  {}"
#: What chance leaves beyond two, and beyond four, standard deviations.
_BEYOND_TWO, _BEYOND_FOUR = math.erfc(2 / math.sqrt(2)), math.erfc(4 / math.sqrt(2))


@click.command(cls=Command)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:n.")
@click.option("--full", is_flag=True, help="All lattices, larger ones, more samples: for a GPU.")
@click.option("--seed", type=WholeNumber(min=0, max=2**63 - 1), default=1, show_default=True,
              help="Seed of all samples.")  # fmt: skip
@as_json
def command(device: str, full: bool, seed: int, as_json: bool) -> int:
    """Compare this installation with exact results, and say whether to trust it.

    Generators are compared with known outputs, every labeler of the device with the reference, and
    samples with enumerations and exact thresholds, clusters per site and spanning probabilities.  A
    value with an error may deviate by 4 sigma; all others must be equal.  The exit code is 0 if
    every check passes, 1 if one fails.  docs/validation.md lists the checks.
    """
    from percolab.kernels.device import Device
    from percolab.run.stored import Interrupted
    from percolab.validation import Conditions

    conditions = Conditions(Device.parse(device).resolve(), seed=seed, full=full)
    start = time.monotonic()
    try:
        rows = _run(conditions, quiet=as_json)
    except Interrupted as error:
        echo("interrupted", err=True)
        sys.exit(error.exit_code)
    record = _record(conditions, rows, time.monotonic() - start)
    if as_json:
        echo_json(record)
    else:
        _conclude(record)
    return 0 if record["trusted"] else 1


def _run(conditions: Conditions, *, quiet: bool) -> list[dict[str, Any]]:
    """Run all checks, with a bar on stderr and, unless quiet, rows on stdout as they are found."""
    from tqdm import tqdm

    from percolab.analysis.json_values import plain
    from percolab.validation import list_checks, run_check

    rows: list[dict[str, Any]] = []
    names = ("name", "value", "expected", "sigma", "z", "note", "correlated")
    checks, group = list_checks(conditions), ""
    terminal = sys.stderr.isatty()
    # A row must not be written into the bar, which is drawn again below it.
    write = partial(tqdm.write, file=sys.stdout) if terminal else echo
    look: dict[str, Any] = {"unit": " checks", "file": sys.stderr, "dynamic_ncols": True}
    with tqdm(total=len(checks), mininterval=0.1 if terminal else 10.0, **look) as bar:
        for check in checks:
            bar.set_postfix_str(f"{check.group}: {check.name}", refresh=terminal)
            for outcome in run_check(check, conditions):
                row = plain({name: getattr(outcome, name) for name in names})
                row |= {"exact": outcome.sigma is None, "holds": bool(outcome.holds)}
                rows.append({"group": check.group, **row})
                if quiet:
                    continue
                if check.group != group:
                    group = check.group
                    head = _ROW.format("", "value", "expected", "sigma", "z", "")
                    write(f"{group}{head[len(group) :]}".rstrip())
                write(_line(outcome))
            bar.update()
    return rows


def _line(outcome: Outcome) -> str:
    verdict = "holds" if outcome.holds else "FAILS"
    note = f" ({outcome.note})" if outcome.note and not outcome.holds else ""
    shown = [f"{outcome.value:g}", f"{outcome.expected:g}", "exact", ""]
    if outcome.z is not None and outcome.sigma is not None:
        # Two digits of the error, as far as they go.
        leading = math.floor(math.log10(outcome.sigma)) if outcome.sigma > 0 else -3
        digits = min(max(1 - leading, 0), 10)
        shown = [f"{number:.{digits}f}" for number in (outcome.value, outcome.expected)]
        shown += [f"{outcome.sigma:.1e}", f"{outcome.z:+.1f}"]
    return _ROW.format(outcome.name, *shown, verdict + note)


def _record(conditions: Conditions, rows: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Return all that was found.

    How many values have an error, how many are far off, and what chance would do: what is of the
    same samples counts once there, by its covariance; but each value may fail.
    """
    from percolab.run.engine import device_label
    from percolab.store.provenance import package_versions
    from percolab.validation import LIMIT

    with_error = [row for row in rows if not row["exact"] and row["z"] is not None]
    deviations = [row["z"] for row in with_error if not row["correlated"]]
    return {
        "trusted": all(row["holds"] for row in rows),
        "device": str(conditions.device),
        "device_name": device_label(conditions.device),
        "versions": package_versions(),
        "full": conditions.full,
        "seed": conditions.seed,
        "limit": LIMIT,
        "seconds": round(seconds, 1),
        "values_with_error": len(with_error),
        "independent_values": len(deviations),
        "beyond_2_sigma": sum(abs(z) > 2 for z in deviations),
        "beyond_2_sigma_by_chance": len(deviations) * _BEYOND_TWO,
        "false_alarm_probability": 1 - (1 - _BEYOND_FOUR) ** len(with_error),
        "checks": rows,
    }


def _conclude(record: dict[str, Any]) -> None:
    rows = record["checks"]
    failed = [row for row in rows if not row["holds"]]
    echo(
        f"\n{record['values_with_error']} of {len(rows)} values have an error.  Those of the same "
        f"samples taken together, {record['independent_values']} are independent: "
        f"{record['beyond_2_sigma']} of these are beyond 2 sigma, where chance puts "
        f"{record['beyond_2_sigma_by_chance']:.1f}.  One value beyond 4 sigma by chance has "
        f"probability {record['false_alarm_probability']:.1g} at most"
    )
    where = f"on {record['device']}, seed {record['seed']}, {record['seconds']:.0f} s"
    if record["trusted"]:
        echo(f"TRUSTED: all {len(rows)} checks hold ({where})")
        return
    echo(f"NOT TRUSTED: {len(failed)} of {len(rows)} checks fail ({where})")
    if all(not row["exact"] and row["z"] is not None for row in failed):
        echo("only values with an error fail: see whether they do with another --seed")

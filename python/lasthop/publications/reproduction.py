"""Published experiments, run by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from lasthop import files, lab, publications, terminal
from lasthop.publications import Experiment, index
from lasthop.publications.rows import Outcome
from lasthop.publications.study.kept import Kept
from lasthop.publications.study.published import Answer
from lasthop.publications.study.reproduce import FILES
from lasthop.publications.study.reproduce import reproduce as run


@dataclass(frozen=True)
class Reproduced:
    """An experiment that was run."""

    #: As in "koutsianas2007/fig4.2".
    id: str
    title: str
    #: With results.json and report.html.
    folder: Path
    #: Published statements with their verdicts, and answers to open questions.
    answers: Sequence[Answer]


def reproduce(
    experiment: str,
    output: str | Path | None = None,
    *,
    seeds: int | None = None,
    quick: bool = False,
    threads: int = 0,
    force: bool = False,
) -> list[Reproduced]:
    """Runs published experiments; writes for each results.json and report.html, and prints a table
    of its statements.

    `experiment` is one of them ("koutsianas2007/fig4.2"), a publication ("obanaik2003"), or the
    beginning of some names ("bbn8333/beyond/f"). `output` is the folder, by default reports/ID; of
    several experiments each has a folder in it. `seeds` are the runs of a point; `quick` makes only
    the figures, with 3 seeds. Files in the folder that lasthop did not write are replaced only with
    `force`.

    Finished runs are kept in the folders until everything is done: the same call goes on with them
    after whatever ended it.
    """
    chosen = publications.find(experiment)
    lab.check_seeds(1, 1 if seeds is None else seeds, threads)
    folders = _folders(chosen, None if output is None else Path(output))
    tops = _tops(folders)
    for folder in (*folders.values(), *tops.values()):
        files.claim_folder(folder)
        files.claim(*(folder / name for name in FILES), force=force)
    if len(chosen) > 1:
        terminal.say(f"[dim]{len(chosen)} experiments: {', '.join(of.id for of in chosen)}[/]")
    done: list[Reproduced] = []
    with _kept(folders) as kept:
        for publication, group in groupby(chosen, key=lambda of: of.publication):
            outcomes: list[Outcome] = []
            for of in group:
                study, folder = of.load(), folders[of.id]
                folder.mkdir(parents=True, exist_ok=True)
                kept[of.id].hold()
                answers, outcome = run(
                    study, folder, seeds=seeds, quick=quick, threads=threads, kept=kept[of.id]
                )
                outcomes += [outcome] if outcome else []
                done.append(Reproduced(of.id, study.title, folder, answers))
            if publication in tops and outcomes:
                index.write(tops[publication], publication, outcomes)
    return done


@contextmanager
def _kept(folders: Mapping[str, Path]) -> Iterator[Mapping[str, Kept]]:
    """What is kept of each experiment until all of them are done."""
    with ExitStack() as stack:
        kept = {id: stack.enter_context(Kept(folder, id)) for id, folder in folders.items()}
        try:
            yield kept
        except BaseException:
            if any(map(len, kept.values())):
                terminal.say(
                    "[dim]what is finished is kept: the same command goes on from there[/]"
                )
            raise
        for one in kept.values():
            one.done()


def _folders(chosen: Sequence[Experiment], output: Path | None) -> dict[str, Path]:
    """The folder of each experiment."""
    if output is None:
        return {of.id: Path("reports") / of.id for of in chosen}
    if len(chosen) == 1:
        return {chosen[0].id: output}
    # Experiments of one publication by their names, of several by both.
    one = len({of.publication for of in chosen}) == 1
    return {of.id: output / (of.name if one else of.id) for of in chosen}


def _tops(folders: Mapping[str, Path]) -> dict[str, Path]:
    """The folders of the pages of whole publications, of those that have several experiments."""
    found = {}
    for publication, names in publications.publications().items():
        ids = [f"{publication}/{name}" for name in names]
        if len(ids) > 1 and all(id in folders for id in ids):
            found[publication] = folders[ids[0]].parent
    return found

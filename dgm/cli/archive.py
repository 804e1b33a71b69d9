"""``dgm archive``: pack a run into one file to publish, unpack it, and check that either matches its log."""

import sys
from pathlib import Path

import click

from dgm.archive.finding import find_packed, find_run
from dgm.archive.run import Run
from dgm.cli.archive_clean import gc, rm
from dgm.cli.arguments import as_json, run_argument
from dgm.cli.output import emit_json
from dgm.show.safe import one_line


@click.group()
def archive() -> None:
    """Pack a run into one file to publish, unpack such a file, verify either; remove runs, and what they left."""


archive.add_command(gc)
archive.add_command(rm)


@archive.command(short_help="Make one file of a run, to publish.")
@run_argument
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--force-agents",
    is_flag=True,
    help="Publish agents whose source holds a personal path or what looks like a key, as they are.",
)
@as_json
def pack(run_name: str, file: Path, force_agents: bool, as_json: bool) -> None:
    """Pack RUN into the new FILE (….dgm); keys and personal paths are replaced by <key>, <home>, <host> ….

    A run can be packed while it is written: up to the event that is its last one then. Agents' sources cannot
    be changed, since an agent is its commit; one that holds such a thing is refused by name.
    """
    from dgm.publish.packing import pack as pack_run
    from dgm.publish.scrubbing import LocalIdentity

    manifest = pack_run(find_run(run_name), file, LocalIdentity.here(), force_agents=force_agents)
    size = file.stat().st_size
    if as_json:
        emit_json(
            {
                "run": manifest.run,
                "file": str(file),
                "bytes": size,
                "counts": dict(manifest.counts),
                "replaced": dict(manifest.replaced),
            }
        )
        return
    counts = manifest.counts
    sys.stdout.write(
        f"{file}: {size:,} bytes: {counts['agents']} agents, {counts['events']} events, "
        f"{counts['traces']} traces{', the holdout examination' if 'holdout_events' in counts else ''}\n"
    )
    total = sum(manifest.replaced.values())
    places = ", ".join(f"{count} {placeholder}" for placeholder, count in sorted(manifest.replaced.items()))
    sys.stdout.write(f"replaced in {total} places{': ' + places if places else ''}\n")


@archive.command(short_help="Make a run of such a file.")
@click.argument("file", metavar="FILE")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@as_json
def unpack(file: str, folder: Path | None, as_json: bool) -> None:
    """Make an ordinary run of a packed FILE: in FOLDER, or under its own name where runs are kept."""
    from dgm.archive.unpacking import choose_folder, find_addresses
    from dgm.archive.unpacking import unpack as unpack_run

    found = find_packed(file)
    target = folder or choose_folder(found)
    manifest = unpack_run(found, target)
    with Run.open(target) as run:
        places = sorted(find_addresses(run.config))
    if as_json:
        counts = dict(manifest.counts)
        emit_json({"run": target.name, "folder": str(target), "counts": counts, "addresses": places})
        return
    sys.stdout.write(f"{manifest.run} is in {target}; look with: dgm status {folder or target.name}\n")
    if places:
        named = one_line(", ".join(places), 300)
        sys.stdout.write(
            f"before you resume it: its settings in run.json name {named}, where your keys would go\n"
        )


@archive.command(short_help="Check all checksums, traces, commits and refs.")
@click.argument("name", metavar="RUN_OR_FILE")
@as_json
def verify(name: str, as_json: bool) -> None:
    """Check every checksum, every trace that an event names, git's objects, and the agents' descent.

    Names the first thing wrong and exits with 1.
    """
    from dgm.archive.verifying import verify_named

    counts = verify_named(name)
    if as_json:
        emit_json({"name": name, "sound": True, "checked": dict(counts)})
        return
    checked = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in counts.items())
    sys.stdout.write(f"{name} is sound; checked: {checked}\n")

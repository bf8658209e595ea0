"""The gallery shows every kind of figure; its page is the script's, its pictures are small."""

import click
import numpy as np
import pytest
from helpers import script
from PIL import Image

from percolab.cli import COMMANDS, main
from percolab.figures.kinds import KINDS

gallery = script("gallery")

pictures = [picture for part in gallery.PARTS for picture in part.pictures]


def test_every_kind_of_figure_has_a_picture():
    shown = [p.command.split("--kind ")[1].split()[0] for p in pictures if "--kind" in p.command]
    assert sorted(shown) == sorted(KINDS)
    assert {p.name for p in pictures} >= {"show", "show-bethe", "invasion", "lattice", "overview"}


def test_the_page_is_that_of_the_script_and_has_all_pictures():
    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.page()
    kept = {path.name for path in gallery.PICTURES.iterdir()}
    assert kept == {f"{picture.name}.png" for picture in pictures}
    assert sum(path.stat().st_size for path in gallery.PICTURES.iterdir()) < 2e6


def test_every_command_has_options_that_there_are():
    commands = [study for part in gallery.PARTS for study in part.studies]
    commands += [picture.command.format(out="x.png") for picture in pictures]
    assert len(commands) > 30
    for words in commands:
        name, *arguments = words.split()
        assert name in COMMANDS
        # As main makes it: a command keeps the help option of its first context.
        own = main.get_command(None, name)
        context = own.make_context(name, arguments, **main.context_settings)
        assert isinstance(context, click.Context)


def test_a_picture_is_made_small_and_keeps_its_colours(tmp_path):
    image = Image.new("RGB", (2160, 900), "white")
    others = np.random.default_rng(1).integers(0, 256, (100, 100, 3), dtype=np.uint8)
    image.paste(Image.fromarray(others), (2000, 0))
    drawn = {48: (233, 103, 0), 300: (226, 226, 226), 600: (255, 255, 255)}
    for column, colour in drawn.items():
        image.paste(colour, (2 * column, 0, 2 * column + 300, 900))
    image.save(tmp_path / "large.png")
    (tmp_path / "small.png").write_bytes(gallery.smaller(tmp_path / "large.png"))
    with Image.open(tmp_path / "small.png") as small:
        assert small.size == (1000, 417)
        for column, colour in drawn.items():
            found = small.convert("RGB").getpixel((column, 200))
            assert found == pytest.approx(colour, abs=4), column

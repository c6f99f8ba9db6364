"""What long work looks like on the terminal."""

import io

from rich.console import Console

from mkdesc.cli import progress


def shown_after(seconds_each, monkeypatch, what="describing"):
    """What is left on the screen of work on 22 images, eight of 30 being done before."""
    screen = io.StringIO()
    now = 0.0
    console = Console(file=screen, force_terminal=True, width=120, get_time=lambda: now)
    monkeypatch.setattr(progress, "console", console)
    with progress.progress_bar("images") as tell:
        tell(what, 8, 30)
        for done in range(9, 31):
            now += seconds_each
            tell(what, done, 30)
    return screen.getvalue()


def test_speed_leaves_out_what_was_done_before(monkeypatch):
    shown = shown_after(0.1, monkeypatch)
    assert "30 of 30" in shown
    assert "10 images/s" in shown


def test_work_that_took_no_time_has_no_speed(monkeypatch):
    shown = shown_after(1e-5, monkeypatch)
    assert "30 of 30" in shown
    assert "images/s" not in shown


def test_slow_work_has_a_speed_and_a_speed_is_shown_once(monkeypatch):
    assert "0.2 images/s" in shown_after(5.0, monkeypatch)
    shown = shown_after(5.0, monkeypatch, "training: 7 right, 0.3 steps/s")
    assert "0.3 steps/s" in shown
    assert "0.2 steps/s" not in shown

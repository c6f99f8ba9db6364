"""What is said of learning from views."""

from mkdesc.learn.view_report import Figures, ViewReport


def test_the_speed_is_that_of_the_training():
    figures = Figures(20.0, 40.0, 100.0)
    report = ViewReport(6, ["a.jpg"], figures, figures, 300, 60.0, False)
    assert report.lines()[0] == "6 photographs, 300 steps in 60.0 s (5.0 steps/s)"
    untrained = ViewReport(6, [], figures, figures, 0, 0.0, False)
    assert untrained.lines()[0] == "6 photographs"

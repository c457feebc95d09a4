"""What a reader needs of a figure: every text large enough, inside, and clear of every other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

SMALLEST = 6.0  # points
TOUCH = 1.0  # pixels by which two boxes around texts may overlap


def texts(figure: Figure) -> list[Text]:
    """Every text that is drawn."""
    from matplotlib.text import Text

    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]


def words(figure: Figure) -> list[str]:
    """What they say."""
    return [text.get_text() for text in texts(figure)]


def unreadable(figure: Figure) -> list[str]:
    """What a reader would complain about."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    found = texts(figure)
    complaints = [f"{text.get_text()!r} is tiny" for text in found if float(text.get_fontsize()) < SMALLEST]
    boxes = np.array([text.get_window_extent(renderer).extents for text in found]).reshape(-1, 4)
    width, height = figure.bbox.width, figure.bbox.height
    outside = (boxes[:, :2] < -TOUCH).any(axis=1) | (boxes[:, 2] > width + TOUCH) | (boxes[:, 3] > height + TOUCH)
    complaints += [f"{found[place].get_text()!r} is cut off" for place in np.flatnonzero(outside)]
    for place, box in enumerate(boxes):
        others = boxes[place + 1 :]
        across = np.minimum(box[2], others[:, 2]) - np.maximum(box[0], others[:, 0])
        down = np.minimum(box[3], others[:, 3]) - np.maximum(box[1], others[:, 1])
        for other in np.flatnonzero((across > TOUCH) & (down > TOUCH)):
            complaints.append(f"{found[place].get_text()!r} overlaps {found[place + 1 + other].get_text()!r}")
    return complaints

#!/usr/bin/env python3
"""The film that measured calls show: film.py FILE.y4m (83 MB). Needs numpy.

640x360, 30 frames a second, 8.03 s, over and over: a texture of five sizes that drifts, six boxes that move, and grain.
VP8 makes 0.1 to 6 Mbit/s of it. Where it begins again the whole picture is another one.
"""

import sys

import numpy

WIDTH, HEIGHT, FRAMES = 640, 360, 241
# Cells of the texture across the picture, how bright they are, and how many pixels they move in a frame.
LAYERS = [(4, 40, 0.7, 0.3), (12, 25, -1.2, 0.6), (40, 16, 2.1, -0.9), (120, 10, -0.6, 1.7), (300, 7, 1.4, 1.1)]
BOXES = 6
GRAIN = 2.0


def texture(random: numpy.random.Generator, cells: int) -> numpy.ndarray:
    """Smooth noise over twice the picture, which goes on at its other edge."""
    corners = random.standard_normal((cells, cells))

    def along(length: int) -> tuple[numpy.ndarray, numpy.ndarray]:
        at = numpy.linspace(0, cells, length, endpoint=False)
        cell = at.astype(int)
        part = at - cell
        return cell, part * part * (3 - 2 * part)

    (row, down), (column, right) = along(2 * HEIGHT), along(2 * WIDTH)
    next_row, next_column = (row + 1) % cells, (column + 1) % cells

    def mixed(rows: numpy.ndarray) -> numpy.ndarray:
        return corners[rows][:, column] * (1 - right) + corners[rows][:, next_column] * right

    return mixed(row) * (1 - down)[:, None] + mixed(next_row) * down[:, None]


def box(random: numpy.random.Generator) -> tuple[float, ...]:
    """Width, height, where its corner is at first, how it moves in a frame, and its shade."""
    size = random.integers(30, 90), random.integers(30, 90)
    limits = [(0, WIDTH), (0, HEIGHT), (-6, 6), (-4, 4), (20, 235)]
    return *size, *(random.uniform(least, most) for least, most in limits)


def main() -> None:
    random = numpy.random.default_rng(7)
    layers = [(texture(random, cells), bright, x, y) for cells, bright, x, y in LAYERS]
    boxes = [box(random) for _ in range(BOXES)]
    with open(sys.argv[1], "wb") as film:
        film.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F30:1 Ip A1:1 C420jpeg\n".encode())
        for frame in range(FRAMES):
            light = numpy.full((HEIGHT, WIDTH), 128.0)
            for layer, bright, x, y in layers:
                light += bright * numpy.roll(layer, (round(y * frame), round(x * frame)), (0, 1))[:HEIGHT, :WIDTH]
            for wide, high, x, y, across, down, shade in boxes:
                left, top = int(x + across * frame) % WIDTH, int(y + down * frame) % HEIGHT
                light[top:top + high, left:left + wide] = shade
            light += random.normal(0, GRAIN, (HEIGHT, WIDTH))
            planes = [light, 128 + 0.3 * (light[::2, ::2] - 128), 128 - 0.2 * (light[1::2, 1::2] - 128)]
            film.write(b"FRAME\n" + b"".join(plane.clip(0, 255).astype(numpy.uint8).tobytes() for plane in planes))


main()

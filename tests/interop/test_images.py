"""PNG and JPEG files are read as Pillow reads them, scaled nearly as it scales them, and by plain code as by vectors."""
import io
import os
import struct
import subprocess
import zlib

import numpy as np
from PIL import Image

from common import DUMP, folder


def image_of(path, **environment):
    done = subprocess.run([DUMP, "image", str(path)], capture_output=True, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr.decode()
    return np.asarray(Image.open(io.BytesIO(done.stdout)))


def scene(w, h, channels, seed=1):
    """Soft shapes with edges and a little noise, as photographs have them."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:h, 0:w]
    planes = [120 + 80 * np.sin(x / (5 + k)) * np.cos(y / (7 + 2 * k)) + 50 * ((x - w / 2) ** 2 + (y - h / 2) ** 2 < (h / 3) ** 2)
              for k in range(channels)]
    return np.clip(np.stack(planes, -1) + random.normal(0, 6, (h, w, channels)), 0, 255).astype(np.uint8)


def same(path, wanted):
    ours = image_of(path)
    assert ours.shape == wanted.shape, (ours.shape, wanted.shape)
    assert (ours == wanted).all(), f"{(ours != wanted).sum()} values differ, by up to {np.abs(ours.astype(int) - wanted).max()}"


def png(mode, **options):
    with folder() as here:
        channels = {"1": 1, "L": 1, "P": 3, "RGB": 3, "LA": 2, "RGBA": 4}[mode]
        pixels = scene(37, 29, channels)
        image = Image.fromarray(pixels.squeeze(), {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[channels])
        if mode in ("1", "P"):
            image = image.convert(mode)
        image.save(here / "x.png", **options)
        opened = Image.open(here / "x.png")
        if mode in ("LA", "RGBA"):
            white = Image.new("RGBA", opened.size, "white")
            wanted = Image.alpha_composite(white, opened.convert("RGBA")).convert("L" if mode == "LA" else "RGB")
            ours = image_of(here / "x.png").astype(int)
            assert np.abs(ours - np.asarray(wanted)).max() <= 1  # Pillow rounds another way
        else:
            same(here / "x.png", np.asarray(opened.convert("RGB" if mode in ("RGB", "P") else "L")))


def wide_png(channels):
    """16 bits, of which the higher 8 are kept. Pillow writes none with colours, so that this does."""
    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    values = np.random.default_rng(2).integers(0, 65536, (11, 13, channels), np.uint16)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    with folder() as here:
        (here / "x.png").write_bytes(
            b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 13, 11, 16, 0 if channels == 1 else 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
        same(here / "x.png", (values >> 8).astype(np.uint8).squeeze())
        if channels == 3:
            same(here / "x.png", np.asarray(Image.open(here / "x.png")))


def jpeg(mode, size=(83, 61), **options):
    """Equal where both have the same libjpeg-turbo; a level is allowed between its versions. Vector code and plain
    code are equal always."""
    with folder() as here:
        pixels = scene(*size, 1 if mode == "L" else 3)
        Image.fromarray(pixels.squeeze()).save(here / "x.jpg", **options)
        ours, wanted = image_of(here / "x.jpg"), np.asarray(Image.open(here / "x.jpg"))
        assert ours.shape == wanted.shape and np.abs(ours.astype(int) - wanted).max() <= 1
        plain = image_of(here / "x.jpg", JSIMD_FORCENONE="1")
        assert (plain == ours).all(), "vector instructions change the bytes"


def fitting(size, to):
    """Crops around the centre and scales as Pillow's antialiased bilinear filter, but for its rounding."""
    with folder() as here:
        (w, h), (to_w, to_h) = size, to
        image = Image.fromarray(scene(w, h, 3))
        image.save(here / "x.png")
        ours = np.frombuffer(subprocess.run([DUMP, "fit", str(here / "x.png"), "3", str(to_h), str(to_w)], check=True,
                                            capture_output=True).stdout, np.uint8).reshape(3, to_h, to_w)
        part_w, part_h = (round(h * to_w / to_h), h) if w * to_h > h * to_w else (w, round(w * to_h / to_w))
        left, top = (w - part_w) // 2, (h - part_h) // 2
        theirs = image.crop((left, top, left + part_w, top + part_h)).resize(to, Image.BILINEAR)
        difference = np.abs(ours.transpose(1, 2, 0).astype(int) - np.asarray(theirs))
        assert difference.max() <= 1, difference.max()
        grey = subprocess.run([DUMP, "fit", str(here / "x.png"), "1", str(h), str(w)], check=True, capture_output=True).stdout
        assert (np.frombuffer(grey, np.uint8).reshape(h, w) == np.asarray(image.convert("L"))).all()


def cases():
    for mode in ("1", "L", "P", "RGB", "LA", "RGBA"):
        yield f"png {mode}", lambda mode=mode: png(mode)
    yield "png of few bits", lambda: png("P", bits=2)
    yield "png with a transparent colour", lambda: png("RGB", transparency=(0, 0, 0))
    yield "png 16 bits grey", lambda: wide_png(1)
    yield "png 16 bits of colours", lambda: wide_png(3)
    yield "jpeg grey", lambda: jpeg("L", quality=90)
    for subsampling in (0, 1, 2):
        for quality in (30, 95):
            for progressive in (False, True):
                yield f"jpeg {subsampling} {quality} {progressive}", lambda s=subsampling, q=quality, p=progressive: \
                    jpeg("RGB", subsampling=s, quality=q, progressive=p)
    for size in ((1, 1), (2, 1), (7, 3), (16, 16), (640, 481)):
        yield f"jpeg of {size}", lambda size=size: jpeg("RGB", size)
    for size, to in (((64, 64), (28, 28)), ((640, 480), (32, 32)), ((33, 70), (28, 20)), ((5, 9), (32, 32)), ((28, 28), (28, 28))):
        yield f"fitting {size} to {to}", lambda size=size, to=to: fitting(size, to)

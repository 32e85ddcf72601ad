"""The Embed panel: vectors as they come, Stop in mid-batch, faults at their line, the keyboard."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

from playwright.sync_api import expect

from e2e.playground import Playground
from tests.live.server import LiveServer

# On a machine that does much else it may be confirmed late, and then says so.
RECEIPT = re.compile(
    r"^stopped (in [\d.]+ m?s · \d+ lines? wasted · slot released$|· the engine needed more than)"
)
DIMS = 8  # of the scripted engine's vectors
SLOW = "step_ms=100"  # of the first line: a line is answered in each step
MANY = [SLOW, *(f"line {index}" for index in range(2, 301))]
TOO_LONG = "word " * 300


def test_lines_become_vectors_a_heat_map_and_a_plane(embedding: Playground) -> None:
    embedding.test_id("embed-sample").click()

    batch = embedding.batch.wait_state("completed")

    lines = batch.lines.count()
    assert lines > 8
    expect(batch.in_state("done")).to_have_count(lines)
    expect(batch.count).to_have_text(f"{lines} of {lines} lines")
    expect(batch.heat).to_have_attribute("data-rows", str(lines))
    expect(batch.scatter).to_have_attribute("data-points", str(lines))
    expect(batch.root).to_contain_text(f"{DIMS} dimensions")
    expect(batch.receipt).to_contain_text(f"embedded {lines} lines")
    announced = embedding.page.locator("#announcer").inner_text()
    assert re.fullmatch(rf"Embedding\.\s+Embedded {lines} lines\.", announced.strip())
    embedding.filter_wire(batch.stream_id)
    embedding.wait_wire("done")
    types = [kind for kind in embedding.wire_types() if kind != "ack"]
    assert [types[0], types[-2], types[-1]] == ["open", "rows", "done"]


def test_stop_in_mid_batch_ends_the_work_and_keeps_what_had_come(
    embedding: Playground, embedding_server: LiveServer
) -> None:
    batch = embedding.embed(*MANY).wait_answered(3)

    batch.stop.click()
    batch.wait_state("cancelled")

    embedding_server.wait_idle(20)
    expect(batch.receipt).to_have_text(RECEIPT)
    frozen = batch.count.inner_text()
    assert 3 <= int(frozen.split(" of ")[0]) < len(MANY)
    expect(batch.heat).not_to_have_attribute("data-rows", "0")
    expect(embedding.page.get_by_text(re.compile("median stop|1 late"))).to_be_visible()
    embedding.filter_wire(batch.stream_id)
    embedding.wait_wire("cancelled")
    assert embedding.wire_types()[-1] == "cancelled"
    assert embedding.wire_types().count("cancel") == 1


def test_what_is_wrong_with_a_line_stands_at_that_line(embedding: Playground) -> None:
    batch = embedding.embed("one", TOO_LONG, "three", "nan", "five").wait_state("completed")

    expect(batch.in_state("done")).to_have_count(3)
    expect(batch.in_state("failed")).to_have_count(2)
    expect(batch.lines.nth(1)).to_have_attribute("data-reason", "input_too_long")
    expect(batch.lines.nth(1)).to_contain_text("302 tokens, and the model reads 256")
    expect(batch.lines.nth(3)).to_have_attribute("data-reason", "generation_failed")
    expect(batch.receipt).to_contain_text("2 lines without a vector")
    expect(batch.scatter).to_have_attribute("data-points", "3")
    embedding.test_id("truncate").check()
    embedding.embed("one", TOO_LONG).wait_state("completed")
    expect(batch.in_state("failed")).to_have_count(0)
    expect(batch.in_state("cut")).to_contain_text("only its beginning was embedded")
    expect(batch.receipt).to_contain_text("1 cut")


def test_a_batch_that_fails_keeps_its_vectors_and_says_why(embedding: Playground) -> None:
    batch = embedding.embed("fail_at=3 step_ms=300", *(f"line {i}" for i in range(2, 9)))

    batch.wait_state("errored")

    expect(batch.root).to_have_attribute("data-reason", "generation_failed")
    expect(batch.receipt).not_to_be_empty()
    batch.again.click()
    batch.wait_state("errored")


def test_the_heat_map_and_the_plane_are_read_with_the_keyboard(embedding: Playground) -> None:
    batch = embedding.embed("first", "second", "third").wait_state("completed")
    batch.heat.focus()
    expect(batch.readout).to_contain_text(re.compile(r"-?\d\.\d\d.*first.*second", re.DOTALL))
    embedding.page.keyboard.press("ArrowDown")
    embedding.page.keyboard.press("ArrowRight")
    expect(batch.readout).to_contain_text(re.compile(r"-?\d\.\d\d.*second.*third", re.DOTALL))

    batch.scatter.focus()
    expect(batch.readout).to_contain_text(re.compile(r"-?\d\.\d\d1 first"))
    embedding.page.keyboard.press("ArrowRight")

    expect(batch.readout).to_contain_text(re.compile(r"-?\d\.\d\d2 second"))
    batch.lines.first.focus()
    embedding.page.keyboard.press("ArrowDown")
    expect(batch.lines.nth(1)).to_be_focused()
    expect(batch.lines.first).to_contain_text(re.compile(r"-?\d\.\d\d"))


def test_escape_stops_and_again_starts_over(embedding: Playground) -> None:
    batch = embedding.embed(*MANY).wait_answered(2)
    first = batch.stream_id
    embedding.page.keyboard.press("Escape")
    batch.wait_state("cancelled")

    batch.again.click()

    batch.wait_answered(2)
    assert batch.stream_id > first
    embedding.page.keyboard.press("Shift+Escape")
    batch.wait_state("cancelled")


def test_pointing_at_a_line_says_how_alike_the_others_are(embedding: Playground) -> None:
    batch = embedding.embed("first", "second", "third").wait_state("completed")

    batch.lines.nth(2).hover()

    expect(batch.lines.nth(0)).to_contain_text(re.compile(r"first-?\d\.\d\d"))
    expect(batch.lines.nth(2)).to_have_text("3third")
    expect(batch.readout).to_contain_text("third")


def test_vectors_are_saved_as_json_and_csv(embedding: Playground, tmp_path: Path) -> None:
    batch = embedding.embed("first", "nan", "third").wait_state("completed")
    for extension in ("json", "csv"):
        with embedding.page.expect_download() as download:
            batch.root.get_by_test_id(f"save-{extension}").click()
        download.value.save_as(tmp_path / f"embeddings.{extension}")

    rows = json.loads((tmp_path / "embeddings.json").read_text())
    with (tmp_path / "embeddings.csv").open(newline="") as file:
        table = list(csv.reader(file))

    assert [row["text"] for row in rows] == ["first", "nan", "third"]
    assert rows[1]["error"]["code"] == "generation_failed"
    assert len(rows[2]["embedding"]) == DIMS
    assert [row[:3] for row in table[2:]] == [["1", "nan", "generation_failed"], ["2", "third", ""]]
    assert [float(value) for value in table[3][3:]] == rows[2]["embedding"]


def test_the_code_tab_shows_code_that_runs(embedding: Playground) -> None:
    logged: list[str] = []
    embedding.page.on("console", lambda message: logged.append(message.text))
    embedding.page.get_by_role("tab", name="Code").click()
    shown = embedding.page.get_by_role("region", name="The same through the SDK")
    expect(shown).to_contain_text("plait.embed.create({")
    expect(shown).to_contain_text(f'from "{embedding.url}/static/sdk/index.js"')

    embedding.page.evaluate("import('/static/playground/examples/embed.js').then(() => 0)")

    assert "completed" in logged[-1]
    assert len(logged) == 3  # two vectors, and how it ended


def test_a_phone_has_room_for_all_of_it(embedding: Playground) -> None:
    embedding.page.set_viewport_size({"width": 360, "height": 740})
    batch = embedding.embed(*MANY).wait_answered(2)
    for part in (batch.heat, batch.scatter, batch.stop, embedding.test_id("embed")):
        expect(part).to_be_in_viewport(ratio=1)
    assert not embedding.overflows_sideways()

    batch.stop.click()

    expect(batch.wait_state("cancelled").receipt).to_be_in_viewport(ratio=1)
    assert not embedding.overflows_sideways()


def test_a_server_without_embeddings_says_what_to_do(playground: Playground) -> None:
    playground.show_panel("Embed")

    expect(playground.test_id("no-embedding")).to_contain_text("plait models pull all-minilm-l6-v2")
    expect(playground.test_id("embed-input")).to_be_hidden()

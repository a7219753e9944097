"""A page gets the JavaScript client in one file, made of modules."""

from __future__ import annotations

import re
from importlib.resources import files

from tocsin import web


def test_a_page_gets_one_file_that_imports_nothing_and_has_what_pages_use() -> None:
    text = web.client().decode()
    assert text.startswith("/**\n * The subscriber's client")
    assert re.findall(r"^import", text, re.MULTILINE) == []
    exported = {name for names in re.findall(r"^export \{(.*)\};", text, re.MULTILINE) for name in names.split(", ")}
    exported |= set(re.findall(r"^export (?:async )?(?:class|const|function) (\w+)", text, re.MULTILINE))
    classes = {"Gap", "Note", "Subscriber", "Subscription", "TocsinError"}
    assert exported == classes | {"RULES", "connect", "register", "unregister"}


def test_what_is_loaded_for_an_overlay_is_one_file_too_and_shares_the_errors() -> None:
    text = web.client(web.CONTENT).decode()
    assert re.findall(r"^import .*", text, re.MULTILINE) == ['import {TocsinError} from "./tocsin.js";']
    exported = set(re.findall(r"^export (?:async )?(?:class|const|function) (\w+)", text, re.MULTILINE))
    assert exported == {"CONTENT_RULES", "ContentSubscription", "OverlayConnection"}


def test_no_module_is_forgotten() -> None:
    sources = {path.name for path in files(web).iterdir() if path.name.endswith(".js")}
    assert sources == {web.CLIENT, web.CONTENT, *web._PARTS, *web._CONTENT_PARTS}

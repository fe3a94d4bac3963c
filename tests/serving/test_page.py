"""The page, in a real browser that reaches nothing but the server."""

import re
import shutil

import httpx
import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="there is no chromium (Debian: chromium)")
# Without these the browser looks for a network at every start.
QUIET = """--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync
    --disable-background-networking --disable-component-update""".split()


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def page(browser, server):
    """The page, opened; what it logs and what it asks of other servers are mistakes.

    The browser logs refusals of the server by itself.
    """
    page = browser.new_page()
    page.set_default_timeout(300_000)
    mistakes = []
    page.on("console", lambda message: mistakes.append(message.text))
    page.on("pageerror", lambda error: mistakes.append(str(error)))
    page.on("request", lambda request: mistakes.append(request.url))
    page.goto(server)
    yield page
    page.close()
    # A test may have typed before the browser came to the focus that the page asks for.
    own = (server, "data:", "Failed to load", "Autofocus")
    assert not [mistake for mistake in mistakes if not mistake.startswith(own)]


def translate(page, text):
    """Type a text; returns the lines of the translation once they are there."""
    with page.expect_response(lambda r: r.url.endswith("/translate")):
        page.fill("#source", text)
    sync_api.expect(page.locator("#status")).to_have_text(re.compile(r"\d ms$"))
    return page.locator("#target li").all_text_contents()


def best(server, text, **options):
    body = {"text": text} | options
    (result,) = httpx.post(f"{server}/translate", json=body).json()["results"]
    return result["translations"]


def answer(page, source, target):
    """Answer all that the page asks with this translation, in the place of the server."""
    maps = [{"source": [source], "target": [target], "weights": [[1.0]]}]
    found = {"text": target, "score": -0.1, "parts": [target], "attention": maps}
    results = [{"source": source, "translations": [found], "parts": [source]}]
    page.route("**/translate", lambda route: route.fulfill(json={"results": results}))


def test_the_page_translates_line_by_line_but_for_code(page, server):
    sync_api.expect(page.locator("#model")).to_have_text("multi30k-en-de")
    code = ["```sh", "  ls A dog.", "", "```"]
    dog = best(server, "A dog sleeps.")[0]["text"]
    lines = ["A dog sleeps.", "", *code, "A dog sleeps."]
    assert translate(page, "\n".join(lines)) == [dog, "", *code, dog]
    assert page.locator("#target button").count() == 2 * len(dog.rstrip(".").split())


def test_the_best_translations_and_their_attention_are_shown(page, server):
    translate(page, "A man rides a bike.\nTwo dogs play in the snow.")
    page.locator("#target li").nth(1).locator("button").first.click()
    expected = best(server, "Two dogs play in the snow.", nbest=3, attention=True)
    texts = [f"{t['text']}{t['score']:.3f}" for t in expected]
    sync_api.expect(page.locator("#hypotheses button")).to_have_text(texts)
    page.locator("#hypotheses button").nth(2).click()
    (shown,) = expected[2]["attention"]
    assert page.locator("#maps thead th").all_text_contents() == shown["source"]
    assert page.locator("#maps tbody th").all_text_contents() == shown["target"]
    titles = page.locator("#maps tbody td").evaluate_all("cells => cells.map(c => c.title)")
    weights = [float(re.search(r"([\d.]+)$", title)[1]) for title in titles]
    assert weights == pytest.approx(sum(shown["weights"], []), abs=2e-3)


def test_a_word_is_replaced_and_the_translation_goes_on_from_there(page, server):
    texts = "A man rides a bike.", "Two dogs play in the snow."
    first, second = (best(server, text)[0]["text"] for text in texts)
    assert translate(page, " ".join(texts)) == [f"{first} {second}"]
    begun, word, *_ = second.split()
    asked = {"prefix": f"{begun} ", "alternatives": True, "nbest": 6, "beam": 6}
    others = [found["text"] for found in best(server, texts[1], **asked)]
    page.get_by_role("button", name=word, exact=True).click()
    sync_api.expect(page.locator("#word")).to_have_text(word)
    sync_api.expect(page.locator("#alternatives button")).to_have_text(others)
    for text in (others[1], others[-1]):
        page.locator("#alternatives button").nth(others.index(text)).click()
        sync_api.expect(page.locator("#target li")).to_have_text(f"{first} {text}")
    last = page.locator("#target button").last
    last.click()  # of what was chosen
    sync_api.expect(page.locator("#word")).to_have_text(last.text_content())


def know(page, known):
    """Tell the page that the server knows these languages: of each those that it goes to."""
    told = [{"code": c, "name": c.upper(), "targets": [c, *to]} for c, to in known.items()]
    page.route("**/languages", lambda route: route.fulfill(json=told))


def test_languages_and_a_key_can_be_given_where_there_is_a_choice(page):
    assert not page.locator("#from, #to, #key").first.is_visible()
    know(page, {"en": ["de"], "de": ["fr"], "fr": []})
    page.route("**/frontend/settings", lambda route: route.fulfill(json={"keyRequired": True}))
    page.reload()
    page.select_option("#to", label="DE")
    assert page.locator("#from option").all_text_contents() == ["any", "EN", "DE"]
    assert page.locator("#to option").all_text_contents() == ["the other", "DE", "FR"]
    page.fill("#key", "secret")
    with page.expect_request("**/translate") as asked:
        page.fill("#source", "A dog sleeps.")
    assert asked.value.headers["authorization"] == "Bearer secret"
    body = asked.value.post_data_json
    assert (body["source"], body["target"]) == ("auto", "de")
    sync_api.expect(page.locator("#target")).to_have_text(re.compile("Hund"))


def test_the_page_asks_for_no_wider_beam_than_the_server_takes(page):
    asked, settings = [], {"maxBeam": 2, "keyRequired": False}
    page.route("**/frontend/settings", lambda route: route.fulfill(json=settings))
    with page.expect_response("**/frontend/settings"):
        page.reload()
    page.on("request", lambda request: asked.append(request.post_data_json))
    translate(page, "A man rides a bike.")
    page.locator("#target button").nth(1).click()
    sync_api.expect(page.locator("#alternatives li")).to_have_count(2)
    assert {body.get("nbest", 1) for body in filter(None, asked)} == {1, 2}


SHOWN = ["#target li", "#alternatives button", "#hypotheses button", "tbody th"]


@pytest.mark.parametrize(
    ("targets", "languages"), [(["he"], ("ja", "he")), (["he", "zh"], ("ja", ""))]
)
def test_text_has_its_direction_and_its_language(page, targets, languages):
    know(page, {"ja": targets, "he": [], "zh": []})
    answer(page, "x", "הכלב ישן.")
    page.reload()
    translate(page, "x")
    page.locator("#target button").first.click()
    page.wait_for_selector("#alternatives button")
    for side, direction, lang in zip(
        (["#source", "thead th"], SHOWN), ("ltr", "rtl"), languages, strict=True
    ):
        for shown in side:
            sync_api.expect(page.locator(shown).first).to_have_css("direction", direction)
            closest = "e => e.closest('[lang]').lang"
            assert page.locator(shown).first.evaluate(closest) == lang, shown


def test_markup_is_text(page):
    hostile = "<img src=x onerror=document.title='pwned'> <script>document.title='pwned'</script>"
    translate(page, f"{hostile}\n{hostile}")
    assert page.title() == "resmlp-mt"
    assert page.locator("main img, main script, #detail img, #detail script").count() == 0

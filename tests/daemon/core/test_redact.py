"""Secrets go, everything else stays to the byte."""

import base64
import json
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.redact import Redactor

REDACTOR = Redactor(b"a key of this test")
NOISE = random.Random(11)
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def some(length: int, alphabet: str = LETTERS) -> str:
    """Random characters, a digit among them."""
    return "7" + "".join(NOISE.choice(alphabet) for _ in range(length - 1))


def b64url(length: int) -> str:
    return base64.urlsafe_b64encode(NOISE.randbytes(length)).decode().rstrip("=")


HEX = "0123456789abcdef"
SHAPES = {
    "openai": [f"sk-{some(48)}", f"sk-proj-{some(60)}", f"sk-svcacct-{some(40)}", f"sk-or-v1-{some(64, HEX)}"],
    "anthropic": [f"sk-ant-api03-{some(93)}", f"sk-ant-oat01-{some(40)}-{some(20)}"],
    "google": [f"AIza{some(35)}", f"GOCSPX-{some(28)}"],
    "github": [f"ghp_{some(36)}", f"gho_{some(36)}", f"ghs_{some(36)}", f"github_pat_{some(22)}_{some(59)}"],
    "gitlab": [f"glpat-{some(20)}"],
    "huggingface": [f"hf_{some(34)}"],
    "aws": ["AKIAIOSFODNN7EXAMPLE", "ASIAQWERTYUIOPASDFGH"],
    "slack": [f"xoxb-1234567890-{some(24)}", f"xoxp-{some(30)}", f"xapp-1-{some(30)}"],
    "stripe": [f"sk_live_{some(24)}", f"rk_test_{some(24)}", f"whsec_{some(32)}"],
    "twilio": [f"SK{some(32, HEX)}"],
    "sendgrid": [f"SG.{some(22)}.{some(43)}"],
    "npm": [f"npm_{some(36)}"],
    "pypi": [f"pypi-AgEIcHlwaS5vcmc{some(60)}"],
    "groq": [f"gsk_{some(52)}"],
    "jwt": [f"eyJhbGciOiJIUzI1NiJ9.eyJ{b64url(60)}.{b64url(32)}"],
}
SECRETS = [(kind, secret) for kind, secrets in SHAPES.items() for secret in secrets]


def redact(text: str) -> str:
    return REDACTOR.redact(text.encode())[0].decode()


@pytest.mark.parametrize(("kind", "secret"), SECRETS)
@pytest.mark.parametrize(
    "around",
    ["{}", "key: {}", "KEY={}\nNEXT=1", "'{}'", "`{}`,", "({})", "<{}>", "https://host/x/{}?a=1", "a,{},b", "x={};y"],
)
def test_a_key_of_a_known_shape_goes(kind: str, secret: str, around: str) -> None:
    text = around.format(secret)
    shown = redact(text)
    assert secret not in shown
    assert shown.startswith(text[: text.index(secret)] + f"[redacted:{kind}:")
    assert shown.endswith("]" + text[text.index(secret) + len(secret) :])


@pytest.mark.parametrize(("kind", "secret"), SECRETS)
@pytest.mark.parametrize("ascii", [True, False])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_key_inside_json_goes_and_json_stays(kind: str, secret: str, times: int, *, ascii: bool) -> None:
    """Tool arguments are JSON inside a JSON string, a recorded session is JSON inside that."""
    text = f"first\n{secret}\tthen\r\n“{secret}”\n"
    for _ in range(times):
        text = json.dumps({"content": text}, ensure_ascii=ascii)
    shown, count = REDACTOR.redact(text.encode())
    assert count == 2
    assert secret.encode() not in shown
    inner: object = shown.decode()
    for _ in range(times):
        assert isinstance(inner, str)
        inner = json.loads(inner)["content"]
    assert isinstance(inner, str)
    assert inner.count(f"[redacted:{kind}:") == 2
    assert inner.startswith("first\n[")


@pytest.mark.parametrize("ascii", [True, False])
@pytest.mark.parametrize("times", [0, 1, 2])
def test_a_private_key_goes_however_its_lines_are_broken(times: int, *, ascii: bool) -> None:
    lines = [base64.b64encode(NOISE.randbytes(48)).decode() for _ in range(25)]
    pem = "-----BEGIN RSA PRIVATE KEY-----\n" + "\n".join(lines) + "\n-----END RSA PRIVATE KEY-----"
    text = f"cat key.pem\n{pem}\ndone"
    for _ in range(times):
        text = json.dumps({"content": text}, ensure_ascii=ascii)
    shown, count = REDACTOR.redact(text.encode())
    inner: object = shown.decode()
    for _ in range(times):
        assert isinstance(inner, str)
        inner = json.loads(inner)["content"]
    assert count == 1
    assert not any(line.encode() in shown for line in lines)
    assert isinstance(inner, str)
    assert inner.startswith("cat key.pem\n[redacted:private-key:")
    assert inner.endswith("]\ndone")


def test_a_private_key_is_the_same_however_it_is_written() -> None:
    pem = f"-----BEGIN PRIVATE KEY-----\n{b64url(60)}\n{b64url(60)}\n-----END PRIVATE KEY-----"
    assert json.loads(redact(json.dumps(pem))) == redact(pem)


@pytest.mark.parametrize(
    "cut", ["-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA", "-----BEGIN EC PRIVATE KEY-----"]
)
def test_half_a_private_key_goes_and_json_stays(cut: str) -> None:
    shown = REDACTOR.redact(json.dumps([cut, 'next "string" \\']).encode())[0]
    first, second = json.loads(shown)
    assert first.startswith("[redacted:private-key:")
    assert second == 'next "string" \\'


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("postgres://app:s3cr3t-pw@db.local/x", "s3cr3t-pw"),
        ("mongodb+srv://u:pässword@host", "pässword"),
        ("redis://:onlypassword@host:6379", "onlypassword"),
        (r"{\"url\":\"https:\/\/me:hunter22@host\/p\"}", "hunter22"),
        ("DB_PASSWORD=P@ssw0rd!23\nNEXT=1", "P@ssw0rd!23"),
        ('"password": "correct-horse-1"', "correct-horse-1"),
        (r"{\"password\":\"tr0ub4dor\"}", "tr0ub4dor"),
        ("Server=tcp:x;User Id=me;Password=Zx9!kkk2;Encrypt=true", "Zx9!kkk2"),
        ("pwd=Qwerty12345;", "Qwerty12345"),
        ("passwd: 'ab12cd34'", "ab12cd34"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        (
            "aws_secret_access_key = a1/b2c3d4e5f6/g7h8i9j0k1/l2m3n4o5p6/q7r8",
            "a1/b2c3d4e5f6/g7h8i9j0k1/l2m3n4o5p6/q7r8",
        ),
        (
            "AccountKey=3l1x/Zq9+abcDEF0123456789ghiJKL+mnoPQR/stuVWX==;",
            "3l1x/Zq9+abcDEF0123456789ghiJKL+mnoPQR/stuVWX==",
        ),
        ("TWILIO_AUTH_TOKEN=9f86d081884c7d659a2feaa0c55ad015", "9f86d081884c7d659a2feaa0c55ad015"),
        ('{"api_key": "q8Zr2LmN7pXv4TkB"}', "q8Zr2LmN7pXv4TkB"),
        ("client_secret: 8Q~abcDEF.1234567890_ghijk", "8Q~abcDEF.1234567890_ghijk"),
        ("Authorization: Bearer reef_8f2kq0v7m3x9z1", "reef_8f2kq0v7m3x9z1"),
        (r"-H \"Authorization: Bearer 0a9s8d7f6g5h4j3k2l1\"", "0a9s8d7f6g5h4j3k2l1"),
        ("authorization: basic dXNlcjpwYXNzd29yZDEyMw==", "dXNlcjpwYXNzd29yZDEyMw=="),
        ("GET /v1beta/models?key=Zx8Yw7Vu6Ts5Rq4Po3 HTTP/1.1", "Zx8Yw7Vu6Ts5Rq4Po3"),
        ("x-api-key: 5f4dcc3b5aa765d61d8327deb882cf99", "5f4dcc3b5aa765d61d8327deb882cf99"),
    ],
)
def test_a_secret_behind_a_key_word_goes(text: str, secret: str) -> None:
    shown = redact(text)
    assert secret not in shown
    assert "[redacted:" in shown
    assert redact(shown) == shown


def escaped(text: str, times: int, *, ascii: bool) -> str:
    for _ in range(times):
        text = json.dumps(text, ensure_ascii=ascii)[1:-1]
    return text


@pytest.mark.parametrize("ascii", [True, False])
@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("postgres://app:s3cr3t-pässword@db.local/x", "s3cr3t-pässword"),
        ("postgres://größe:hunter22@db.local/x", "hunter22"),
        ("DB_PASSWORD=Pässw0rd!23\nNEXT=1", "Pässw0rd!23"),
        ('{"password": "correct-hörse-1"}', "correct-hörse-1"),
        ("$pwd=Qwörty12345;", "Qwörty12345"),
        ('{"api_key": "q8Zr2LmN7pXv4TkB"}', "q8Zr2LmN7pXv4TkB"),
        ('"client_secret": "8Q~abcDEF.1234567890_ghijk"', "8Q~abcDEF.1234567890_ghijk"),
        ("-H 'Authorization: Bearer 0a9s8d7f6g5h4j3k2l1'", "0a9s8d7f6g5h4j3k2l1"),
        ('{"Cookie": "theme=dark; sid=aB3dE5fG7hJ9kL1m2N"}', "aB3dE5fG7hJ9kL1m2N"),
        ("Server=tcp:x.database.windows.net;User Id=me;Password=Zx9!kkk2;Encrypt=true", "Zx9!kkk2"),
    ],
)
def test_a_secret_goes_however_deep_it_is_quoted(text: str, secret: str, times: int, *, ascii: bool) -> None:
    """A tool's output in a message (once), in a call's arguments (twice), in a session that was read (three times)."""
    shown = redact(escaped(text, times, ascii=ascii))
    assert escaped(secret, times, ascii=ascii) not in shown
    inner = shown
    for _ in range(times):
        inner = json.loads(f'"{inner}"')
    assert inner.startswith(text[: text.index(secret)] + "[redacted:")
    assert inner.endswith("]" + text[text.index(secret) + len(secret) :])


@pytest.mark.parametrize("times", [0, 1, 2])
def test_a_url_whose_slashes_are_escaped_keeps_no_password(times: int) -> None:
    """PHP writes them so, and a tool prints its files."""
    shown = redact(escaped(r'{"dsn":"mysql:\/\/me:hunter22@host\/db"}', times, ascii=True))
    assert "hunter22" not in shown
    assert "[redacted:credential:" in shown


KEPT = [
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    '"signature": "EqQBCkYIBxgCKkD' + b64url(400) + '"',
    '"thinkingSignature":"' + b64url(300) + '"',
    "data:image/png;base64," + base64.b64encode(NOISE.randbytes(3000)).decode(),
    '"id":"toolu_01A09q90qw90lq917835lq9"',
    '"tool_call_id": "call_9pw8ubs1yq7h3k5jd0"',
    '"prompt_cache_key":"0199f0c2-7a5b-7c3d-9e1f-2a4b6c8d0e1f"',
    "session_id: 3fa85f64-5717-4562-b3fc-2c963f66afa6",
    "Idempotency-Key: 8e03978e-40d5-43dd-bc93-6894a57f9324",
    '"max_tokens": 1234567890123456789',
    "token = generate_access_token_for_the_user(request)",
    "password = os.environ['DB_PASSWORD']",
    "password=self.password_field, api_key=settings.OPENAI_API_KEY",
    'password: "********"',
    "def check_password(password: str) -> bool:",
    "sk-learn-is-a-library-with-a-long-name",
    "task-management-system-design-document-final",
    "https://user@host/path and http://a.b:8080/c@d",
    "PWD=/home/dev/project1 OLDPWD=/tmp/x1y2z3",
    "the eyJ prefix, AKIA, ghp_ and xoxb- on their own",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "token: aaaaaaaaaaaaaaaaaaaa1",
    "Set-Cookie: theme=dark; Path=/; Expires=Wed, 21 Oct 2026 07:28:00 GMT",
    "the cookie: chocolate=verygoodandverylong",
    base64.b64encode(b"Hello world, here is a text without anything to hide in it. " * 3).decode(),
    '"cursor": "' + base64.b64encode(b'{"page": 4, "sort": "created_at", "id": 918273645}').decode() + '"',
    "",
]


@pytest.mark.parametrize("before", ["", "x", "xy", '{"a": "', "=", "line\n", 'doubly \\"'])
@pytest.mark.parametrize(("kind", "secret"), SECRETS[:8])
def test_a_key_in_a_text_that_was_encoded_goes(kind: str, secret: str, before: str) -> None:
    """``base64 .env``: what an agent's tool prints, on a line or in JSON."""
    encoded = base64.b64encode(f"# a file\nKEY={secret}\nOTHER=1\n".encode()).decode()
    shown = redact(f"$ base64 .env {before} {encoded}\n")
    assert encoded[8:40] not in shown
    assert f"[redacted:{kind}:" in shown
    assert redact(shown) == shown
    assert json.loads(redact(json.dumps({"out": f"a\n{encoded}"})))["out"].startswith("a\n[redacted:")


@pytest.mark.parametrize(
    "text",
    [
        "Cookie: theme=dark; sid={}", "curl -H 'Cookie: sid={}' http://x", '{{"Set-Cookie": "sid={}; Path=/"}}',
        "set-cookie: a=1; b=2; __Host-s={}; HttpOnly",
    ],
)  # fmt: skip
def test_cookies_go_and_their_names_stay(text: str) -> None:
    secret = some(32)
    shown = redact(text.format(secret))
    assert secret not in shown
    assert "=[redacted:cookie:" in shown
    assert redact(shown) == shown


@pytest.mark.parametrize("text", KEPT)
def test_what_is_no_secret_stays(text: str) -> None:
    assert REDACTOR.redact(text.encode()) == (text.encode(), 0)


@pytest.mark.parametrize(
    "around",
    [
        '{{"type":"thinking","thinking":"hm","signature":"{}"}}',
        '{{"type":"redacted_thinking","data":"{}"}}',
        'data: {{"delta":{{"type":"signature_delta","signature":"{}"}}}}\n\n',
        '{{"type":"reasoning","id":"rs_0123456789abcdef0123456789abcdef","encrypted_content":"{}"}}',
        '{{"extra_content":{{"google":{{"thought_signature":"{}"}}}}}}',
        '{{"reasoning_details":[{{"type":"reasoning.encrypted","data":"{}","format":"x"}}]}}',
        '{{"thinkingSignature":"{}"}}',
        '{{"session":"{{\\"thinkingSignature\\":\\"{}\\"}}"}}',
    ],
)
@pytest.mark.parametrize("letters", ["+/", "-_"])
def test_what_seals_a_thought_stays_to_the_byte(around: str, letters: str) -> None:
    """It looks random, and without every byte of it its vendor refuses the conversation (claude-code#63265)."""
    noise = random.Random(3)
    for length in (24, 65, 99, 300, 767, 1200, 6000):
        text = around.format(base64.b64encode(noise.randbytes(length), letters.encode()).decode())
        assert REDACTOR.redact(text.encode()) == (text.encode(), 0)


@pytest.mark.parametrize("secret", [f"npm_{some(36)}", f"rk_live_{some(24)}", f"token=\n{some(24)}"])
def test_an_escape_is_never_cut(secret: str) -> None:
    r"""``\npm_…`` may be a line break and ``pm_…``."""
    for text in (secret, "\n" + secret[1:], "\r" + secret[1:], "\x1f" + secret, "=\x1f0" + secret, "\\" + secret):
        assert isinstance(json.loads(redact(json.dumps(text))), str)
        assert isinstance(json.loads(json.loads(redact(json.dumps(json.dumps(text))))), str)


def test_equal_secrets_stay_equal_and_guessable_only_with_the_key() -> None:
    one, other = f"sk-ant-api03-{some(40)}", f"sk-ant-api03-{some(40)}"
    shown = redact(f"{one} {other} {one}").split()
    assert shown[0] == shown[2] != shown[1]
    assert Redactor(b"another key").redact(one.encode())[0].decode() != shown[0]


def test_the_count_is_how_many_there_were() -> None:
    assert REDACTOR.redact(f"ghp_{some(36)} and hf_{some(34)}".encode())[1] == 2


TEXT = st.text(max_size=40)
SPICE = st.sampled_from(
    [secret for _, secret in SECRETS]
    + ["password=", "Bearer ", "token: ", '"', "\\", "\n", "://u:", "@", "-----BEGIN RSA PRIVATE KEY-----", "/", "="]
)


@given(st.lists(st.one_of(TEXT, SPICE), max_size=12))
def test_twice_is_once_and_json_stays_json(parts: list[str]) -> None:
    text = "".join(parts)
    for data in (
        text.encode(),
        json.dumps({"a": [text, {"b": text}]}).encode(),
        json.dumps([json.dumps(text)]).encode(),
    ):
        once, _ = REDACTOR.redact(data)
        assert REDACTOR.redact(once) == (once, 0)
    document = json.loads(REDACTOR.redact(json.dumps({"a": [text, {"b": text}]}).encode())[0])
    assert document["a"][0] == document["a"][1]["b"]


@given(st.binary(max_size=300))
def test_bytes_of_any_kind_are_taken(data: bytes) -> None:
    once, count = REDACTOR.redact(data)
    assert (once == data) == (count == 0)


@pytest.mark.parametrize(
    "piece",
    [
        b"a", b"/", b"sk-", b"sk-/+", b"://:@", b"://", b"password=", b"PRIVATE KEY", b"-----BEGIN ", b"secret:",
        b"-----BEGIN RSA PRIVATE KEY-----", b"token=aaaaaaaaaaaaaaa1 ", b"eyJaaaaaaaaaaaaaaaa.eyJ.", b"a1B2c3D4/+",
        b"SG.aaaaaaaaaaaaaaaa", b"\\", b"pwd=", b"Bearer ", b'"', b"aB3-" * 250 + b"/",
        b"cookie=", b"cookie: a=b; ", b"cookie: sid=aB3dE5fG7hJ9kL1m; ",
        base64.b64encode(b"nothing to hide in this line"), base64.b64encode(b"key: sk-0") + b" ",
        base64.b64encode(base64.b64encode(b"token=aB3dE5fG7hJ9kL1mN")) + b"/",
    ],
)  # fmt: skip
def test_time_is_linear(piece: bytes) -> None:
    """A line of 256 KB and one of 1 MB: the second takes about four times the first, never sixteen times."""
    small, large = (piece * (size // len(piece) + 1) for size in (1 << 18, 1 << 20))
    taken = []
    for data in (small, large):
        begin = time.thread_time()
        REDACTOR.redact(data)
        taken.append(time.thread_time() - begin)
    assert taken[1] < max(0.2, 8 * taken[0])


def test_ten_megabytes_without_a_secret_are_quick() -> None:
    text = b"The quick brown fox jumps over the lazy dog; see daemon/core/redact.py, line 42.\n"
    data = text * (10_000_000 // len(text))
    begin = time.thread_time()
    assert REDACTOR.redact(data) == (data, 0)
    assert time.thread_time() - begin < 2


def test_what_was_no_secret_in_one_place_is_one_behind_another_name() -> None:
    value = b"q8Zt3LmX0vB5nR7cJ2wK4d"
    harmless, secret = b'{"id":"%s"}\n' % value, b'{"api_key":"%s"}\n' % value
    for order in ([harmless] * 3 + [secret, harmless], [secret, harmless, harmless, secret]):
        redacted, count = Redactor(b"k").redact(b"data: ".join([b"", *order]))
        assert count == order.count(secret)
        assert redacted.count(value) == order.count(harmless)
        assert redacted.count(b'"api_key":"[redacted:token:') == count


def test_a_secret_between_events_that_share_an_id_goes() -> None:
    shared, secret = "chatcmpl-C4nTbZqY7mW2sJ8kR5vX", "aB3dE5fG7hI9kLmN0pQr"
    events = [f'data: {{"id":"{shared}","said":"word {n}"}}' for n in range(20)]
    events.insert(12, f'data: {{"id":"{shared}","token":"{secret}"}}')
    events.insert(15, f'data: {{"token":"{shared}"}}')
    shown = redact("\n\n".join(events))
    assert secret not in shown
    assert f'"token":"{shared}"' not in shown
    assert shown.count(shared) == 21

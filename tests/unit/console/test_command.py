"""`horolog console` refuses to let anybody in, says where it listens, and ends with the process that started it."""

import argparse
import asyncio
import io
import ssl
import sys
from datetime import UTC

import httpx
import pytest

from horolog.client.cli.commands import BY_NAME
from horolog.client.cli.main import parser_of
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, UsageError
from horolog.console import command
from horolog.console.options import Login
from horolog.console.roles import Role
from tests.support.authority import Authority


def arguments(*words):
    found = parser_of(BY_NAME["console"]).parse_args(list(words))
    found.security = None
    found.client_settings = {}
    found.bootstrap = found.bootstrap or "127.0.0.1:1"
    return found


def console(zone="UTC", environ=None):
    made = Console(io.StringIO(), io.StringIO(), environ=environ or {})
    made.zone_name = zone
    return made


def options(*words, host="127.0.0.1"):
    return command.options_of(arguments(*words), console(), host)


def test_on_loopback_nobody_is_asked():
    found = options("-b", "a:1", "-b", "b:2")
    assert (found.login, [one.name for one in found.clusters], found.zone) == (Login.NONE, ["a:1", "b:2"], UTC)
    assert found.token == ""


def test_http_ports_and_their_tokens(tmp_path, monkeypatch):
    file = tmp_path / "token"
    file.write_text("of-the-file")
    (one,) = options("-b", "a:1", "--http", "http://a:9464", "--http-token-file", str(file)).clusters
    assert (one.http.url, one.http.token, "of-the-file" in repr(one)) == ("http://a:9464", "of-the-file", False)
    words = ["-b", "a:1", "-b", "b:2", "--http", "b:2=https://b:9464", "--http-token-file", f"b:2={file}"]
    first, second = options(*words).clusters
    assert (first.http.url, first.http.token) == (None, None)
    assert (second.http.url, second.http.token) == ("https://b:9464", "of-the-file")


def test_a_token_of_the_environment_is_for_one_cluster():
    def found(*words):
        return command.options_of(arguments(*words), console(environ={"HOROLOG_HTTP_TOKEN": "secret"}), "127.0.0.1")

    assert found("-b", "a:1").clusters[0].http.token == "secret"
    with pytest.raises(UsageError, match="does not name its cluster"):
        found("-b", "a:1", "-b", "b:2")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-b", "a:1", "-b", "b:2", "--http", "http://a"], "does not name its cluster"),
        (["-b", "a:1", "--http", "http://a", "--http", "http://b"], "given twice"),
        (["-b", "a:1", "--http", "a:9464"], "http://HOST:PORT"),
        (["-b", "a:1", "--http-token-file", "/no/such"], "cannot be read"),
    ],
)
def test_http_ports_that_make_no_sense(words, said):
    with pytest.raises(UsageError, match=said):
        options(*words)


TLS = ("--tls-cert", "cert.pem", "--tls-key", "key.pem")


def test_elsewhere_a_token_is_made():
    found = options("--without-tls", host="0.0.0.0")
    assert (found.login, len(found.token) >= 32, "0.0.0.0" in found.hosts) == (Login.TOKEN, True, True)
    assert options(*TLS, "--login", "sasl", "--host", "Console.Example", host="0.0.0.0").hosts >= {"console.example"}
    assert options("--login", "sasl", "--host", "*").any_host


@pytest.mark.parametrize(
    ("words", "host", "said"),
    [
        (["--login", "none"], "0.0.0.0", "other machines can reach"),
        (["--login", "sasl"], "0.0.0.0", "--login sasl without TLS.*--without-tls"),
        ([], "192.0.2.1", "--login token without TLS"),
        (["--host", "*"], "127.0.0.1", "needs a login"),
        (["--tls-cert", "x"], "127.0.0.1", "use --tls-cert and --tls-key together"),
        (["--token-file", "x"], "127.0.0.1", "is for --login token"),
        (["-b", "a", "-b", "a"], "127.0.0.1", "twice"),
        (["-b", "a:b"], "127.0.0.1", "is not an address"),
    ],
)
def test_what_makes_no_sense_is_refused(words, host, said):
    with pytest.raises(UsageError, match=said):
        options(*words, host=host)


def test_a_token_of_a_file(tmp_path):
    path = tmp_path / "token"
    path.write_text("a token that is long enough\n")
    assert options("--login", "token", "--token-file", str(path)).token == "a token that is long enough"
    path.chmod(0o644)
    made = console()
    command.options_of(arguments("--login", "token", "--token-file", str(path)), made, "127.0.0.1")
    assert "chmod 600" in made.err.getvalue()
    path.write_text("short")
    with pytest.raises(CommandError, match="fewer than 16"):
        options("--login", "token", "--token-file", str(path))


def test_where_it_listens():
    assert command._listen("[::1]:80") == ("::1", 80)
    with pytest.raises(UsageError, match="HOST:PORT"):
        command._listen("8080")


async def ready(made):
    async with asyncio.timeout(60):
        while "/\n" not in made.out.getvalue():  # noqa: ASYNC110 - a stream of text has no event
            await asyncio.sleep(0.01)
    return made.out.getvalue().strip()


async def test_it_runs_until_it_is_told_to_end(tmp_path):
    made = console()
    running = asyncio.ensure_future(
        command.listen(arguments("--listen", "127.0.0.1:0", "--login", "token", "--timeout", "200ms"), made)
    )
    address = await ready(made)
    assert "the token is " in made.err.getvalue()
    async with httpx.AsyncClient() as browser:
        assert (await browser.get(address + "login")).status_code == 200
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_it_ends_with_the_process_that_started_it(monkeypatch):
    monkeypatch.setattr(command, "PARENT_SECONDS", 0.01)
    made = console()
    running = asyncio.ensure_future(command.listen(arguments("--listen", "127.0.0.1:0", "--with-parent"), made))
    await ready(made)
    monkeypatch.setattr(command.os, "getppid", lambda: 1 << 30)
    assert await asyncio.wait_for(running, 60) == 0


async def test_a_failure_is_not_lost_with_a_parent():
    async def fail():
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        await command._while_there_is(fail(), command.os.getppid())


async def test_browsers_come_by_tls(tmp_path):
    authority = Authority(tmp_path)
    issued = authority.issue("127.0.0.1")
    made = console()
    words = ["--listen", "127.0.0.1:0", "--tls-cert", str(issued.chain_file), "--tls-key", str(issued.key_file)]
    running = asyncio.ensure_future(command.listen(arguments(*words), made))
    address = await ready(made)
    assert address.startswith("https://")
    trusting = ssl.create_default_context(cafile=str(authority.trusted))
    async with httpx.AsyncClient(verify=trusting) as browser:
        assert (await browser.get(address + "static/console.css")).status_code == 200
    for suites, comes_in in (("AES128-GCM-SHA256:AES256-SHA", False), ("ECDHE-ECDSA-AES128-GCM-SHA256", True)):
        older = ssl.create_default_context(cafile=str(authority.trusted))
        older.maximum_version = ssl.TLSVersion.TLSv1_2
        older.set_ciphers(suites)
        async with httpx.AsyncClient(verify=older) as browser:
            try:
                assert (await browser.get(address + "static/console.css")).status_code == 200
                assert comes_in
            except httpx.ConnectError:
                assert not comes_in
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises((UsageError, OSError)):
        await command.listen(
            arguments("--listen", "127.0.0.1:0", "--tls-cert", str(issued.key_file), "--tls-key", str(issued.key_file)),
            console(),
        )


async def test_without_the_packages_it_says_how_to_get_them(monkeypatch):
    for name in [
        one for one in sys.modules if one.startswith(("starlette", "horolog.console.app", "horolog.console.serving"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette", None)
    with pytest.raises(CommandError, match=r"horolog\[console\]"):
        await command.listen(arguments("--listen", "127.0.0.1:0"), console())


def test_the_zone_is_named():
    assert command._zone_name(console("Europe/Berlin")) == "Europe/Berlin"
    nameless = console(None)
    assert command._zone_name(nameless)
    assert isinstance(arguments(), argparse.Namespace)


def test_the_command_ends_as_its_coroutine_does(monkeypatch):
    async def ended(given, made):
        return type(asyncio.get_running_loop()).__module__.startswith("asyncio")

    monkeypatch.setattr(command, "listen", ended)
    assert command.run(arguments(), console()) is True


OIDC = ("--login", "oidc", "--oidc-issuer", "https://id.example", "--oidc-client-id", "console")


def test_an_identity_provider(tmp_path):
    file = tmp_path / "secret"
    file.write_text("hidden\n")
    file.chmod(0o600)
    words = (
        "--oidc-client-secret-file",
        str(file),
        "--oidc-role",
        "admin=ops",
        "--public-url",
        "https://console.example",
    )
    found = options(*OIDC, *words)
    assert (found.login, found.oidc.issuer, found.oidc.client_secret) == (Login.OIDC, "https://id.example", "hidden")
    assert (found.oidc.roles, found.oidc.claim, found.oidc.public_url) == (
        {"ops": Role.ADMIN},
        "groups",
        "https://console.example",
    )
    assert "hidden" not in repr(found)
    assert options(*OIDC).oidc.client_secret == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--login", "oidc", "--oidc-issuer", "https://id.example"), "needs --oidc-issuer and --oidc-client-id"),
        (("--oidc-issuer", "https://id.example"), "--oidc-issuer is for --login oidc"),
        ((*OIDC, "--oidc-issuer", "http://id.example"), "expected an https address"),
        ((*OIDC, "--public-url", "console.example"), "expected an https address"),
        ((*OIDC, "--oidc-role", "root=x"), "expected ROLE=VALUE"),
    ],
)
def test_wrong_options_of_an_identity_provider(words, said):
    with pytest.raises(UsageError, match=said):
        options(*words)


def test_a_secret_that_cannot_be_read(tmp_path):
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        options(*OIDC, "--oidc-client-secret-file", str(tmp_path / "none"))


def test_without_the_package_for_tokens(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(CommandError, match=r"horolog\[console,oauth\]"):
        options(*OIDC)

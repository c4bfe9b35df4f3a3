"""OAUTHBEARER: the form of its messages, and the answers to tokens that are not believed."""

import pytest

from horolog.broker.base.principal import Principal
from horolog.broker.security.sasl.oauthbearer import OAuthBearer, Token, TokenRefused
from horolog.broker.security.sasl.outcome import Challenge, Failed, LoggedIn


def read(text):
    if text.startswith("bad"):
        raise TokenRefused("it has expired", "eve")
    return Token("ann", 7000)


def message(auth="Bearer abc.def.ghi", gs2="n,,", more=""):
    return f"{gs2}\x01auth={auth}\x01{more}\x01".encode("latin-1")


@pytest.mark.parametrize(
    "token",
    [
        message(),
        message("bearer abc.def.ghi=="),
        message("BEARER   abc"),
        message(gs2="n,a=ann,"),
        message(more="traceId=1\x01host=x y\x01"),
    ],
)
def test_a_token_that_is_believed_says_who_comes_in_and_until_when(token):
    assert OAuthBearer(read).step(token) == LoggedIn(Principal("User", "ann"), ends_ms=7000)


def test_a_token_that_is_not_believed_is_answered_with_json_and_then_the_login_fails():
    one = OAuthBearer(read)
    assert one.step(message("Bearer bad")) == Challenge(b'{"status":"invalid_token"}')
    told = '{"status":"invalid_token"}'
    assert one.step(b"\x01") == Failed("it has expired", "eve", told)
    assert one.step(message()) == Failed("it has expired", "eve", told)  # no second try


@pytest.mark.parametrize(
    ("token", "told"),
    [
        (b"", "Invalid OAUTHBEARER client first message"),
        (b"\x01", "Invalid OAUTHBEARER client first message"),
        (b"n,,\x01auth=Bearer abc\x01", "Invalid OAUTHBEARER client first message"),
        (message(gs2="p=tls-unique,,"), "Invalid OAUTHBEARER client first message"),
        (message(gs2="n,a=an=n,"), "Invalid OAUTHBEARER client first message"),
        (message("Bearer a\xffc"), "Invalid OAUTHBEARER client first message"),
        (b"n,,\x01host=x\x01\x01", "Invalid OAUTHBEARER client first message: 'auth' not specified"),
        (message("abc"), "Invalid OAUTHBEARER client first message: invalid 'auth' format"),
        (message("Bearer a b"), "Invalid OAUTHBEARER client first message: invalid 'auth' format"),
        (message("Basic abc"), "Invalid scheme in OAUTHBEARER client first message: not bearer"),
    ],
)
def test_a_message_of_another_form_is_refused(token, told):
    assert OAuthBearer(read).step(token) == Failed(told, "", told)


def test_another_authorization_id_is_refused():
    failed = OAuthBearer(read).step(message(gs2="n,a=b=2Cb,"))
    assert isinstance(failed, Failed)
    assert failed.told is not None
    assert "(b,b) that is different from the token's principal name (ann)" in failed.told
    assert failed.user == "ann"

"""A small OpenID Connect provider on loopback: discovery, keys, and codes that it exchanges once, if client and verifier are right."""

import hashlib
import json
import threading
import time
from base64 import b64decode, urlsafe_b64encode
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.support.tokens import Signer

CLIENT_ID, SECRET = "console", "s3cret"  # a test's


class IdentityProvider:
    """`claims` are those of the next user; `authorize` is what a browser does there."""

    def __init__(self, port):
        self.issuer = f"http://127.0.0.1:{port}"
        self.signer = Signer("EC", "one")
        self.keys = [self.signer.jwk]
        self.claims = {"sub": "u1", "preferred_username": "ann", "groups": ["viewer"]}
        self.secret = ""
        self.changes = {}
        """Fields of documents and claims that are wrong."""
        self.codes = {}
        self.asked = []

    def document(self):
        paths = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
        found = {"issuer": self.issuer, **{name: self.issuer + path for name, path in paths.items()}}
        return {**found, **{name: value for name, value in self.changes.items() if name in found}}

    def authorize(self, url):
        """The address that the browser is sent back to."""
        words = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert words["client_id"] == CLIENT_ID
        assert (words["response_type"], words["code_challenge_method"]) == ("code", "S256")
        code = f"code-{len(self.codes)}"
        self.codes[code] = words
        return f"{words['redirect_uri']}?code={code}&state={words['state']}"

    def exchange(self, form, authorization):
        """Status and answer of the token endpoint."""
        words = self.codes.pop(form.get("code"), None)
        challenge = urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        sent = b64decode(authorization.removeprefix("Basic ")).decode() if authorization else ""
        is_client = sent == (f"{CLIENT_ID}:{self.secret}" if self.secret else "")
        if not is_client or words is None or challenge != words["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        if form["redirect_uri"] != words["redirect_uri"] or form["client_id"] != CLIENT_ID:
            return 400, {"error": "invalid_request"}
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 60, "nonce": words["nonce"]}
        text = self.signer.sign({**claims, **self.claims, **self.changes}, "ES256")
        return 200, {"token_type": "Bearer", "id_token": text}

    def answer(self, path, form=None, authorization=""):
        self.asked.append(path)
        if path in self.changes:
            return self.changes[path]
        if path == "/token" and form is not None:
            return self.exchange(form, authorization)
        known = {"/.well-known/openid-configuration": self.document(), "/keys": {"keys": self.keys}}
        return (200, known[path]) if path in known else (404, {})


@contextmanager
def identity_provider():
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self):
            if not self.path.startswith("/authorize"):
                self._send(provider.answer(self.path))
                return
            self.send_response(302)
            self.send_header("location", provider.authorize(self.path))
            self.send_header("content-length", "0")
            self.end_headers()

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            self._send(provider.answer(self.path, form, self.headers.get("authorization", "")))

        def _send(self, answer):
            status, content = answer
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = IdentityProvider(server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""A login with an identity provider of another site, in a real browser: its cookies arrive where they have to."""

from playwright.sync_api import expect

from tests.console.test_pages import faults_in
from tests.support.identity_provider import CLIENT_ID, identity_provider


def test_a_browser_goes_to_the_provider_and_comes_back(filled, start_console, page):
    with identity_provider() as provider:
        words = ("--login", "oidc", "--oidc-issuer", provider.issuer, "--oidc-client-id", CLIENT_ID)
        console = start_console("-b", filled[0].address, *words)
        ours = console.address.replace("127.0.0.1", "localhost")  # another site than the provider's 127.0.0.1
        page.goto(f"{ours}/group?name=billing")
        assert faults_in(page) == []
        page.get_by_role("link", name="Log in with").click()
        page.wait_for_url(f"{ours}/group?name=billing")
        expect(page.get_by_role("button", name="Log out ann")).to_be_visible()
        page.get_by_role("link", name="Groups", exact=True).click()
        expect(page.get_by_role("heading", name="Groups", exact=True)).to_be_visible()
        page.get_by_role("button", name="Log out ann").click()
        page.wait_for_url(f"{ours}/login")
        page.goto(f"{ours}/groups")
        page.wait_for_url(f"{ours}/login?to=%2Fgroups")

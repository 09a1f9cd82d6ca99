"""A person with a browser that has no JavaScript."""

import html
import os
import re
from urllib.parse import urljoin

import requests

HOME = os.environ["TIDEGATE_URL"]


def walk(start, **fields):
    """Walks through the pages from an address; returns where it ended."""
    fields = {"username": "alice", "password": "alice1234", "decision": "allow", **fields}
    browser = requests.Session()
    answer = browser.get(start, allow_redirects=False)
    for _ in range(12):
        if "location" in answer.headers:
            url = urljoin(answer.url, answer.headers["location"])
            if not url.startswith(HOME):
                return url
            answer = browser.get(url, allow_redirects=False)
            continue
        form = re.search(r"<form [^>]*>.*?</form>", answer.text, re.S)
        if not form or answer.status_code != 200:
            return answer
        body = {}
        for tag in re.findall(r"<input [^>]*>", form[0]):
            known = dict(re.findall(r'([a-z-]+)="([^"]*)"', tag))
            body[known["name"]] = fields.get(known["name"], html.unescape(known.get("value", "")))
        if 'name="decision"' in form[0]:
            body["decision"] = fields["decision"]
        action = re.search(r'action="([^"]*)"', form[0])[1]
        answer = browser.post(
            urljoin(answer.url, html.unescape(action)), data=body, allow_redirects=False
        )
    raise AssertionError("the pages have no end")

"""Codes by SMS and mail for a server in Python 3.8 or newer, with Python's own library alone.

See docs/guides/your-language.md. Copy the class into your project, and try it in a terminal:

    POSTERN_URL=http://localhost:3000 SECRET_KEY=psk_... python3 postern.py
    send sms +8613800138000 signup
    check sms +8613800138000 signup 1234 <id of the send>
    verify <pass of the check> signup sms +8613800138000
"""
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid


# #region client
class PosternError(Exception):
    """A fault of this program, its key or its settings. Log it, and show the person a general sentence."""


class Postern:
    """Each call returns a dictionary with `outcome`: see the table in the guide. It may be used by many threads."""

    # The person can do something about these. `detail` is the sentence for them.
    FOR_THE_PERSON = {
        *("limited", "locked", "code_mismatch", "code_gone"),
        *("invalid_recipient", "destination_not_allowed"),
    }

    def __init__(self, url, key):
        self.url, self.key = url, key

    def send(self, channel, to, scene, *, ip=None, language="en", idempotency_key=None):
        """`ip`: the visitor's address. `idempotency_key`: one per press of the button, such as a hidden field."""
        body = {"channel": channel, "to": to, "scene": scene, "ip": ip}
        return self._call("accepted", "/v1/captchas", body, language, idempotency_key or str(uuid.uuid4()))

    def check(self, channel, to, scene, code, id, *, ip=None, language="en"):
        """`id`: of the send. With it, a check whose answer was lost can be repeated."""
        body = {"channel": channel, "to": to, "scene": scene, "code": code, "id": id, "ip": ip}
        return self._call("passed", "/v1/captchas/check", body, language)

    def verify(self, pass_, scene, channel, to):
        """A pass that a page has sent. Find accounts by `to` of the answer, which has one spelling per recipient."""
        answer = self._call("valid", "/v1/passes/verify", {"pass": pass_, "channel": channel, "to": to})
        if answer["outcome"] != "valid" or (answer["valid"] and answer["scene"] == scene):
            return answer
        return {"outcome": "invalid", "reason": answer.get("reason", "other_scene")}

    def _call(self, success, path, body, language="en", idempotency_key=None):
        headers = {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "Accept-Language": language,
        }
        if idempotency_key:
            headers["Idempotency-Key"] = idempotency_key
        content = json.dumps({name: value for name, value in body.items() if value is not None}).encode()
        request = urllib.request.Request(self.url + path, content, headers)
        for attempt in (1, 2, 3):
            status, answer, wait_s = self._ask(request)
            code = answer.get("code")
            # Nothing was changed, or the answer was lost. The same request with the same key sends no second message.
            if status not in (502, 503, 504, 599) and code != "idempotency_in_progress":
                break
            if attempt == 3 or wait_s > 2:
                return {"outcome": "unavailable", "retryAfterMs": wait_s * 1000, **answer}
            time.sleep(wait_s)
        if status < 300:
            return {"outcome": success, **answer}
        errors = answer.get("errors", [])
        typed = code == "invalid_request" and errors and all(error["path"] in ("to", "code") for error in errors)
        if typed:
            answer["detail"] = " ".join(error["message"] for error in errors)
        if typed or code in self.FOR_THE_PERSON:
            return {"outcome": code, **answer}
        raise PosternError(f"Postern answers {status} to {path}: {answer}")

    @staticmethod
    def _ask(request):
        """The status (599: no answer), the JSON of the body, and the seconds to wait before the same request."""
        try:
            response = urllib.request.urlopen(request, timeout=5)
        except urllib.error.HTTPError as error:
            response = error
        except OSError:
            return 599, {}, 1
        try:
            with response:
                text, wait_s = response.read(), response.headers.get("Retry-After", "")
        except (OSError, http.client.HTTPException):
            return 599, {}, 1
        wait_s = int(wait_s) if wait_s.isdigit() else 1
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if isinstance(answer, dict):
            return response.status, answer, wait_s
        # A success without its body is no answer. A proxy may answer with a page.
        return 599 if response.status < 300 else response.status, {}, wait_s
# #endregion client


SHOWN = "id codeLength pass scene to reason triesLeft lockedForMs retryAfterMs detail".split()

if __name__ == "__main__":
    postern = Postern(os.environ["POSTERN_URL"], os.environ["SECRET_KEY"])
    # A server has both from the visitor's request.
    ip, language = None, "en"
    for line in sys.stdin:
        command, *words = line.split()
        try:
            # #region calls
            if command == "send":
                channel, to, scene = words
                answer = postern.send(channel, to, scene, ip=ip, language=language)
            elif command == "check":
                channel, to, scene, code, id = words
                answer = postern.check(channel, to, scene, code, id, ip=ip, language=language)
            elif command == "verify":
                pass_, scene, channel, to = words
                answer = postern.verify(pass_, scene, channel, to)
            # #endregion calls
            else:
                raise PosternError(f"there is no command {command}")
            shown = [f"{name}={answer[name]}" for name in SHOWN if name in answer]
            print(" ".join([answer["outcome"], *shown]), flush=True)
        except PosternError as error:
            print("error", error, flush=True)

"""Checks passes without a call of Postern: POSTERN_URL=http://localhost:3000 APP=default python3 verify.py PASS...

See docs/passes.md. Needs `pip install 'pyjwt[crypto]'`.
"""
import os
import sys

import jwt

# #region verify
keys = jwt.PyJWKClient(f"{os.environ['POSTERN_URL']}/.well-known/jwks.json")


def verify(pass_):
    key = keys.get_signing_key_from_jwt(pass_).key
    expected = {"issuer": "postern", "audience": os.environ["APP"], "algorithms": ["ES256"]}
    claims = jwt.decode(pass_, key, **expected, options={"require": ["exp", "jti"]})
    if claims["scene"] != "signup" or not remember_once(claims["jti"]):
        raise jwt.InvalidTokenError("not this pass")
    return claims
# #endregion verify


used = set()


def remember_once(id):
    """Yours is a table with a unique column, which keeps each for five minutes."""
    is_new = id not in used
    used.add(id)
    return is_new


for pass_ in sys.argv[1:]:
    try:
        print("good", verify(pass_)["sub"])
    except jwt.PyJWTError as error:
        print("refused:", error)

"""Response codes of a TPM, in words; TCG "TPM 2.0 Library", part 2, section 6.6."""

AGAIN = (0x922, 0x908, 0x90A)
"""RETRY, YIELDED, TESTING: the same command may succeed in a moment."""
_WORDS = {
    0x81: "does not know this kind of key",
    0x84: "refuses a value",
    0x85: "has its endorsement hierarchy disabled: enable it in the firmware's set-up",
    0x8B: "has no such object",
    0x8E: "has a password on its endorsement hierarchy: clear it",
    0x9D: "refuses the policy of its endorsement key",
    0x9F: "cannot open the challenge: it was made for another TPM, or altered",
    0xA2: "has a password on its endorsement hierarchy: clear it",
    0x100: "was not started by the firmware",
    0x101: "is in failure mode: power the machine off and on; if it stays so, the TPM is broken",
    0x120: "is disabled in the firmware's set-up",
    0x902: "has no room for another object: something else fills it",
    0x903: "has no room for another session: something else fills it",
    0x921: "is locked out after wrong passwords: wait, or clear the lock-out",
    0x922: "is busy",
}


def words(code: int) -> str:
    """What a response code means. Format-one codes (bit 7) name a parameter, handle or session in their other bits."""
    base = code & 0xBF if code & 0x80 else code & 0xFFF
    return f"the TPM {_WORDS.get(base, 'refuses a command')} (response {code:#x})"

"""Keys with a shape of their own, as their makers give them out: what `daemon.core.redact` knows at sight."""

import re
from typing import Final

#: Keys with a shape of their own, by how they begin; the pattern must match from there.
SHAPES: Final = tuple(
    (prefix, kind, re.compile(pattern))
    for prefix, kind, pattern in (
        (b"sk-ant-", "anthropic", rb"sk-ant-[A-Za-z0-9_-]{20,}"),
        (b"sk-", "openai", rb"sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,}"),
        (b"AIza", "google", rb"AIza[A-Za-z0-9_-]{35,}"),
        (b"GOCSPX-", "google", rb"GOCSPX-[A-Za-z0-9_-]{20,}"),
        (b"ghp_", "github", rb"ghp_[A-Za-z0-9]{30,}"),
        (b"gho_", "github", rb"gho_[A-Za-z0-9]{30,}"),
        (b"ghu_", "github", rb"ghu_[A-Za-z0-9]{30,}"),
        (b"ghs_", "github", rb"ghs_[A-Za-z0-9]{30,}"),
        (b"ghr_", "github", rb"ghr_[A-Za-z0-9]{30,}"),
        (b"github_pat_", "github", rb"github_pat_[A-Za-z0-9_]{30,}"),
        (b"glpat-", "gitlab", rb"glpat-[A-Za-z0-9_-]{18,}"),
        (b"hf_", "huggingface", rb"hf_[A-Za-z0-9]{30,}"),
        (b"AKIA", "aws", rb"AKIA[A-Z2-7]{16}(?![A-Za-z0-9])"),
        (b"ASIA", "aws", rb"ASIA[A-Z2-7]{16}(?![A-Za-z0-9])"),
        (b"xox", "slack", rb"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
        (b"xapp-", "slack", rb"xapp-[A-Za-z0-9-]{10,}"),
        (b"sk_live_", "stripe", rb"sk_live_[A-Za-z0-9]{16,}"),
        (b"sk_test_", "stripe", rb"sk_test_[A-Za-z0-9]{16,}"),
        (b"rk_live_", "stripe", rb"rk_live_[A-Za-z0-9]{16,}"),
        (b"rk_test_", "stripe", rb"rk_test_[A-Za-z0-9]{16,}"),
        (b"whsec_", "stripe", rb"whsec_[A-Za-z0-9+/]{24,}"),
        (b"SK", "twilio", rb"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
        (b"npm_", "npm", rb"npm_[A-Za-z0-9]{36,}"),
        (b"pypi-", "pypi", rb"pypi-[A-Za-z0-9_-]{50,}"),
        (b"gsk_", "groq", rb"gsk_[A-Za-z0-9]{40,}"),
        (b"xai-", "xai", rb"xai-[A-Za-z0-9]{40,}"),
        (b"eyJ", "jwt", rb"eyJ[A-Za-z0-9_-]{13,}\.eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*)?"),
    )
)
PREFIXES: Final = tuple({prefix for prefix, _, _ in SHAPES})
SENDGRID: Final = re.compile(rb"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,}")

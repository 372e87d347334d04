"""The table of token formats that providers document publicly. Data only: one row a format.

``TOKENS``: name, literals (each the beginning of a token), what follows.
``SHAPES``: name, literals, whole pattern, for formats whose fixed part is not at the beginning.
``NAMED``: name, words that name the provider (lower case), value: secrets without a form of their own,
assigned to a name that holds the provider's and a word such as "key" or "token".
"""

from __future__ import annotations

import re

from .rules import Rule, basic_credentials, checksum_or_token, jwt, token_like, token_mixed, varied
from .trie import trie

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .rules import Check


def _of(characters: str, low: int, high: int = 0) -> str:
    return f"[{characters}]{{{low},{high}}}" if high else f"[{characters}]{{{low}}}"


def _alnum(low: int, high: int = 0) -> str:
    return _of("A-Za-z0-9", low, high)


def _url(low: int, high: int = 0) -> str:
    return _of("A-Za-z0-9_-", low, high)


def _base64(low: int, high: int = 0) -> str:
    return _of("A-Za-z0-9+/", low, high)


def _hex(low: int, high: int = 0) -> str:
    return _of("a-f0-9", low, high)


def _lower(low: int, high: int = 0) -> str:
    return _of("a-z0-9", low, high)


def _upper(low: int, high: int = 0) -> str:
    return _of("A-Z0-9", low, high)


_END = "(?![A-Za-z0-9])"  # for formats of a fixed length: a longer run is something else
_HERE = (0, 0)
_UUID = "[a-fA-F0-9]{8}-[a-fA-F0-9]{4}-[a-fA-F0-9]{4}-[a-fA-F0-9]{4}-[a-fA-F0-9]{12}"

TOKENS: tuple[tuple[str, str, str] | tuple[str, str, str, Check], ...] = (
    # code hosts and builds
    ("github", "ghp_ gho_ ghu_ ghs_ ghr_", _alnum(36, 255), checksum_or_token),
    ("github", "github_pat_", _of("A-Za-z0-9_", 60, 255)),
    ("gitlab", "glpat- gldt- glrt- glrtr- glft- glsoat- glcbt- glptt- glimt- glagent- gloas- glffct- glwt-", _url(20, 300) + r"(?:\.[a-z0-9.]{2,20})?", token_mixed),
    ("gitlab", "GR1348941", _url(20, 40)),
    ("atlassian", "ATATT3xFfGF0 ATCTT3xFf ATSTT3xFf", _of("A-Za-z0-9_=-", 40, 400)),
    ("bitbucket", "ATBB", _alnum(32) + _END),
    ("circleci", "CCIPAT_ CCIPRJ_", _alnum(22) + "_" + _hex(40)),
    ("buildkite", "bkua_ bkaj_ bkat_ bkpt_ bkct_ bkpi_ bkps_", _lower(40, 64)),
    ("sonar", "sqp_ squ_ sqa_", _hex(40) + _END),
    ("jfrog", "AKCp", _alnum(69, 73)),
    ("jfrog", "cmVmdGtuOj", _alnum(54, 56)),
    ("harness", "pat. sat.", _url(22) + r"\." + _hex(24) + r"\." + _alnum(20)),
    ("octopus", "API-", _upper(25, 34) + _END),
    ("scalingo", "tk-us-", _url(48)),
    ("snyk", "snyk_uat. snyk_sat. snyk_oat.", _of("A-Za-z0-9_.-", 30, 400)),
    ("sourcegraph", "sgp_ sgd_ slk_ sgph_", r"(?:local_|" + _hex(16) + "_)?" + _hex(40, 64)),
    ("postman", "PMAK-", _hex(24) + "-" + _hex(34)),
    ("postman", "PMAT-", _upper(26)),
    ("sidekiq", "sidekiq://", r"\S{8,80}"),
    # package registries
    ("npm", "npm_", _alnum(36) + _END, checksum_or_token),
    ("pypi", "pypi-AgEIcHlwaS5vcmc pypi-AgENdGVzdC5weXBpLm9yZw", _url(40, 400)),
    ("pypi", "pypi-AgE", _url(60, 400)),
    ("rubygems", "rubygems_", _hex(48) + _END),
    ("crates-io", "cio", _alnum(32) + _END, token_mixed),
    ("nuget", "oy2", _lower(43) + _END, token_mixed),
    ("clojars", "CLOJARS_", _lower(60)),
    ("packagist", "packagist_ort_ packagist_out_ packagist_oat_ packagist_uut_", _hex(68)),
    ("docker", "dckr_pat_ dckr_oat_", _url(27, 40)),
    ("readme", "rdme_", _lower(70)),
    # clouds
    ("aws", "AKIA ASIA ABIA ACCA A3T", _upper(16, 17) + _END, varied),
    ("aws-bedrock", "ABSK", _base64(100, 280) + "={0,2}"),
    ("aws-bedrock", "bedrock-api-key-", _of("A-Za-z0-9+/=", 40, 4000)),
    ("aws-session", "FwoGZXIvYXdz IQoJb3JpZ2lu", _of("A-Za-z0-9+/=", 80, 4000)),
    ("aws-mws", "amzn.mws.", _UUID),
    ("aws-oauth", "amzn1.oa2-cs.v1.", _hex(64)),
    ("google", "AIza", _url(35) + "(?![A-Za-z0-9_-])"),
    ("google-oauth", "ya29.", _url(20, 1000)),
    ("google-oauth", "GOCSPX-", _url(24, 40)),
    ("google-oauth", "1//0", _url(36, 200)),
    ("google-hmac", "GOOG", _upper(20, 60) + _END, token_mixed),
    ("google-vertex", "AQ.Ab8R AQ.", _url(40, 80), token_mixed),
    ("digitalocean", "dop_v1_ doo_v1_ dor_v1_", _hex(64) + _END),
    ("heroku", "HRKU-", f"(?:AA{_url(56, 64)}|{_UUID})"),
    ("cloudflare", "v1.0-", _hex(24) + "-" + _hex(100, 160)),
    ("cloudflare", "cfut_ cfat_ cfk_", _alnum(36, 64)),
    ("fly", "fo1_", _url(43)),
    ("fly", "fm1r_ fm1a_ fm2_", _of("A-Za-z0-9+/_=-", 80, 2000)),
    ("vercel", "vcp_ vci_ vca_ vcr_ vck_", _alnum(24, 64)),
    ("vercel-blob", "vercel_blob_rw_", _alnum(14, 24) + "_" + _alnum(20, 40)),
    ("netlify", "nfp_ nfc_ nfo_ nfu_ nfb_", _alnum(36, 64)),
    ("render", "rnd_", _alnum(28, 40) + _END),
    ("supabase", "sbp_", r"(?:oauth_|v0_)?" + _hex(40) + _END),
    ("supabase", "sb_secret_", _url(22, 48)),
    ("planetscale", "pscale_tkn_ pscale_oauth_ pscale_pw_", _of("A-Za-z0-9_=.-", 30, 64)),
    ("neon", "napi_", _lower(60, 70)),
    ("databricks", "dapi dkea dsapi", _hex(32) + r"(?:-\d)?" + _END),
    ("databricks", "dose", _hex(32) + _END),
    ("mongodb", "mdb_sa_sk_", _url(36, 48)),
    ("cockroachdb", "CCDB1_", _alnum(22) + "_" + _alnum(40)),
    ("aiven", "AVNS_ aivenv1", _of("A-Za-z0-9_+/=-", 16, 200)),
    ("alibaba", "LTAI", _alnum(12, 24) + _END, token_mixed),
    ("tencent", "AKID", _alnum(32) + _END),
    ("volcengine", "AKLT", _of("A-Za-z0-9_=-", 40, 80)),
    ("yandex", "t1.", _of("A-Za-z0-9_-", 20, 300) + r"={0,2}\." + _url(80, 90) + "={0,2}"),
    ("yandex", "AQVN", _url(34, 40)),
    ("yandex", "y0_ y1_ y2_ y3_", _url(50, 80)),
    ("openshift", "sha256~", _url(43)),
    ("scaleway", "SCW", _upper(17) + _END, token_mixed),
    ("clickhouse", "4b1d", _alnum(38) + _END),
    ("pulumi", "pul-", _hex(40) + _END),
    ("doppler", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. dp.said.", r"(?:[a-z0-9_-]{2,35}\.)?" + _alnum(40, 44)),
    ("infisical", "st.", _hex(24) + r"\." + _hex(32) + r"\." + _hex(32)),
    ("vault", "hvs. hvb. hvr.", _url(24, 400), token_mixed),
    ("1password", "ops_eyJ", _of("A-Za-z0-9+/=_-", 100, 2000)),
    ("1password", "A3-", r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}"),
    ("age", "AGE-SECRET-KEY-1", _of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
    ("tailscale", "tskey-", r"(?:[a-z]{3,10}-)?[A-Za-z0-9]{6,24}-[A-Za-z0-9]{20,48}"),
    ("ngrok", "ngrok_ ak_2 cr_2", _of("A-Za-z0-9_", 30, 64)),
    ("prefect", "pnu_ pnb_", _alnum(36) + _END),
    ("settlemint", "sm_aat_ sm_pat_ sm_sat_", _alnum(16)),
    ("defined-networking", "dnkey-", _of("a-z0-9=_-", 26) + "-" + _of("a-z0-9=_-", 52)),
    ("temporal", "tmprl_", _of("A-Za-z0-9_.-", 20, 400)),
    # models
    ("anthropic", "sk-ant-", r"(?:[a-z]{2,6}[0-9]{2}-)?" + _url(32, 200), token_mixed),
    ("openai", "sk-proj- sk-svcacct- sk-admin- sk-None- sk-service-", _url(32, 250), token_mixed),
    ("openai", "sk-", _alnum(20) + "T3BlbkFJ" + _alnum(20, 60)),
    ("openrouter", "sk-or-v1- sk-or-", _hex(64)),
    ("langfuse", "sk-lf-", _UUID),
    ("helicone", "sk-helicone-", _lower(7) + r"(?:-[a-z0-9]{7}){3}"),
    ("model-key", "sk-kimi- sk-", _alnum(32, 64) + "(?![A-Za-z0-9_-])", token_mixed),
    ("groq", "gsk_", _alnum(48, 60)),
    ("xai", "xai-", _alnum(70, 90)),
    ("perplexity", "pplx-", _alnum(40, 64)),
    ("replicate", "r8_", _alnum(37, 40)),
    ("huggingface", "hf_", _alnum(30, 40) + _END),
    ("huggingface", "api_org_", _alnum(34) + _END),
    ("fireworks", "fw_", _alnum(22, 24) + _END, token_mixed),
    ("together", "tgp_v1_", _url(40, 50)),
    ("cerebras", "csk-", _lower(48) + _END),
    ("elevenlabs", "sk_", _hex(48) + _END),
    ("langsmith", "lsv2_pt_ lsv2_sk_ ls__", _hex(32) + "(?:_[a-f0-9]{10})?"),
    ("pinecone", "pcsk_", _alnum(5, 7) + "_" + _alnum(50, 70)),
    ("voyage", "pa-", _url(43) + "(?![A-Za-z0-9_-])", token_mixed),
    ("jina", "jina_", _hex(32) + _url(24, 32)),
    ("tavily", "tvly-", r"(?:dev-|prod-)?" + _url(28, 60), token_mixed),
    ("firecrawl", "fc-", _hex(32) + _END),
    ("brave", "BSA", _url(27, 29) + "(?![A-Za-z0-9_-])", token_mixed),
    ("nvidia", "nvapi-", _url(56, 80)),
    ("wandb", "wandb_v1_", _url(40, 100)),
    ("runpod", "rpa_", _alnum(40, 60)),
    ("modal", "as-", _alnum(22) + _END, token_mixed),
    ("kaggle", "KGAT_", _hex(32) + _END),
    ("anyscale", "esecret_ aph0_", _alnum(20, 80)),
    ("cursor", "crsr_ key_", _hex(64) + _END),
    ("apify", "apify_api_", _alnum(32, 40)),
    ("browserbase", "bb_live_", _url(24, 40)),
    ("e2b", "e2b_", _hex(40) + _END),
    ("inngest", "signkey-prod- signkey-test- signkey-branch-", _hex(32, 64)),
    ("trigger-dev", "tr_dev_ tr_prod_ tr_stg_ tr_pat_", _alnum(20, 40)),
    ("deepseek", "dsk-", _hex(32) + _END),
    # monitoring
    ("grafana", "glc_", _base64(32, 400) + "={0,3}"),
    ("grafana", "glsa_", _alnum(32) + "_" + _of("A-Fa-f0-9", 8)),
    ("grafana", "eyJrIjoi", _alnum(60, 400) + "={0,3}"),
    ("new-relic", "NRAK- NRAA- NRAL- NRII- NRJS- NRRA- NRSP- NRIQ- NRBR-", _url(19, 50)),
    ("dynatrace", "dt0a01. dt0c01. dt0s01. dt0s02. dt0s03. dt0s04. dt0s06. dt0s08. dt0s16.", _upper(8, 24) + r"\." + _upper(64)),
    ("sentry", "sntrys_ sntryu_ sntryi_ sntrya_", _of("A-Za-z0-9+/=_", 64, 500)),
    ("honeycomb", "hcaik_ hcbik_ hcxik_ hcalk_ hcblk_ hcamk_", _lower(50, 70)),
    ("posthog", "phx_ phs_", _alnum(40, 50)),
    ("axiom", "xaat- xapt-", _UUID),
    ("elastic", "essu_", _of("A-Za-z0-9+/=", 40, 120)),
    ("launchdarkly", "sdk- api- mob-", _UUID),
    ("statsig", "secret- console-", _alnum(40, 50) + _END, token_mixed),
    ("datadog", "ddapp_ ddpat_", _alnum(30, 50)),
    ("pagerduty", "pdus+_ pdeu+_", _of("A-Za-z0-9+/_-", 20, 120)),
    ("stackhawk", "hawk.", _url(20) + r"\." + _url(20)),
    ("socket", "sktsec_", _url(30, 80)),
    ("instatus", "onyx_", _hex(32)),
    # messages and mail
    ("slack", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxd- xoxc- xoxe-", r"[A-Za-z0-9%+/-]{10,400}", token_mixed),
    ("slack", "xoxe.xoxb- xoxe.xoxp-", r"\d-" + _alnum(100, 250)),
    ("slack", "xapp- xwfp-", r"[0-9A-Za-z-]{20,200}", token_mixed),
    ("slack-webhook", "hooks.slack.com/", r"(?:services|workflows|triggers)/[A-Za-z0-9]{8,16}/[A-Za-z0-9]{8,20}(?:/[A-Za-z0-9]{16,64})?"),
    ("sendgrid", "SG.", _url(16, 32) + r"\." + _url(32, 64)),
    ("brevo", "xkeysib- xsmtpsib-", _hex(64) + "-" + _alnum(16)),
    ("mailgun", "key-", _hex(32) + _END),
    ("mailgun", "pubkey-", _hex(32) + _END),
    ("mailersend", "mlsn.", _hex(64)),
    ("mandrill", "md-", _url(22) + "(?![A-Za-z0-9_-])", token_mixed),
    ("twilio", "SK AC", _hex(32) + _END),
    ("intercom", "dG9rO", _of("A-Za-z0-9+/=", 50, 60)),
    ("resend", "re_", _alnum(8) + "_" + _alnum(20, 28) + _END, token_mixed),
    ("onesignal", "os_v2_app_ os_v2_org_", _lower(100, 110)),
    ("salesforce", "00D", _alnum(12, 15) + "![A-Za-z0-9_.]{60,160}"),
    ("hubspot", "pat-na1- pat-na2- pat-eu1- pat-ap1-", _UUID),
    ("airtable", "pat", _alnum(14) + r"\." + _hex(64)),
    ("notion", "ntn_", _alnum(40, 60)),
    ("notion", "secret_", _alnum(43) + _END, token_mixed),
    ("linear", "lin_api_ lin_oauth_ lin_wh_", _alnum(40, 64)),
    ("asana", "0/ 1/ 2/", r"(?:\d{14,18}/)?\d{14,18}:" + _hex(32)),
    ("clickup", "pk_", r"\d{4,10}_" + _upper(32) + _END),
    ("trello", "ATTA", _alnum(60, 76)),
    ("figma", "figd_ figo_ figu_ figor_", _url(40, 60)),
    ("dropbox", "sl.", _of("A-Za-z0-9_=-", 130, 1500)),
    ("contentful", "CFPAT-", _url(43)),
    ("typeform", "tfp_", _of("A-Za-z0-9_=.-", 40, 64)),
    ("cal-com", "cal_live_ cal_test_", _hex(32)),
    ("frameio", "fio-u-", _of("A-Za-z0-9_=-", 64)),
    ("facebook", "EAAA EAAB EAAC EAAD EAAE EAAF EAAG EAAH EAAI EAAJ EAAK EAAL EAAM EAAN EAAO EAAP EAAQ EAAR EAAS", _alnum(60, 400)),
    ("instagram", "IGQV IGQW IGAA", _url(60, 300)),
    ("twitter", "AAAAAAAAAAAAAAAAAAAAA", r"A{0,2}(?:(?!AAAA)[A-Za-z0-9%]){40,120}"),
    ("pinterest", "pina_", _alnum(32, 100)),
    ("mapbox", "sk.eyJ", _url(40, 300) + r"\." + _url(20, 60)),
    ("liveblocks", "sk_prod_ sk_dev_", _url(32, 80)),
    ("webflow", "ws-", _hex(64)),
    ("nylas", "nyk_v0_ nyk_", _alnum(32, 80)),
    ("adobe", "p8e-", _lower(32) + _END),
    ("intra42", "s-s4t2ud- s-s4t2af-", _hex(64)),
    ("akamai", "akab-", _lower(16) + "-" + _lower(16)),
    # payments and shops
    ("stripe", "sk_live_ sk_test_ rk_live_ rk_test_", _alnum(16, 250)),
    ("stripe-webhook", "whsec_", _of("A-Za-z0-9+/=", 24, 100)),
    ("square", "sq0atp- sq0csp- sq0idp-", _url(22, 43)),
    ("square", "EAAAE EAAAl EAAAF", _url(55, 64)),
    ("braintree", "access_token$production$ access_token$sandbox$", _lower(16) + r"\$" + _hex(32)),
    ("razorpay", "rzp_live_ rzp_test_", _alnum(14, 24)),
    ("flutterwave", "FLWSECK_TEST- FLWSECK-", _of("A-Za-z0-9", 32, 40) + "(?:-[A-Z0-9]{1,3})?"),
    ("plaid", "access-sandbox- access-development- access-production-", _UUID),
    ("shopify", "shpat_ shpca_ shppa_ shpss_ shptka_ shpua_", _of("a-fA-F0-9", 32)),
    ("shippo", "shippo_live_ shippo_test_", _hex(40)),
    ("easypost", "EZAK EZTK", _alnum(54)),
    ("lob", "live_ test_", _of("a-f0-9", 35) + "(?![A-Za-z0-9])"),
    ("mollie", "live_ test_", _alnum(30, 35) + "(?![A-Za-z0-9_-])", token_mixed),
    ("gocardless", "live_ sandbox_", _of("A-Za-z0-9_=-", 40) + "(?![A-Za-z0-9_=-])", token_mixed),
    ("duffel", "duffel_live_ duffel_test_", _of("A-Za-z0-9_=-", 43)),
    ("paddle", "pdl_live_apikey_ pdl_sdbx_apikey_", _lower(26) + "_" + _alnum(22) + "_" + _alnum(3)),
    ("polar", "polar_oat_ polar_pat_ polar_rt_ polar_at_", _alnum(30, 60)),
    ("coinbase", "organizations/", _UUID + "/apiKeys/" + _UUID),
    ("maxmind", "mmk_", _alnum(29)),
)  # fmt: skip

SHAPES: tuple[
    tuple[str, tuple[str, ...], str, tuple[int, int]] | tuple[str, tuple[str, ...], str, tuple[int, int], Check], ...
] = (
    # name, literals, pattern, how far before the literal a match begins, check
    ("jwt", ("eyJ",), "eyJ" + _url(8, 4000) + r"\." + _url(8, 60000) + r"\." + _url(10, 4000) + r"(?:\." + _url(10, 60000) + r"\." + _url(10, 100) + ")?", _HERE, jwt),
    ("jwt", ("eyJ",), "eyJ" + _url(20, 4000) + r"\.[A-Za-z0-9_-]{0,2000}\." + _url(10, 100) + r"\." + _url(10, 60000) + r"\." + _url(10, 100), _HERE, jwt),
    ("terraform", (".atlasv1.",), r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}", (14, 14), token_like),
    ("telegram", (":AA",), r"\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])", (8, 10), token_like),
    ("mailchimp", ("-us",), r"[a-f0-9]{32}-us\d{1,2}(?![A-Za-z0-9])", (32, 32), token_like),
    ("new-relic", ("NRAL",), r"[a-f0-9]{32,36}(?:FFFF)?NRAL(?![A-Za-z0-9])", (32, 40), token_like),
    ("maxmind", ("_mmk",), r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?![A-Za-z0-9])", (36, 36), token_like),
    ("azure-storage", ("AccountKey=",), r"AccountKey=(?P<secret>[A-Za-z0-9+/]{60,90}={0,2})", _HERE),
    ("azure-bus", ("SharedAccessKey=",), r"SharedAccessKey=(?P<secret>[A-Za-z0-9+/]{40,60}={0,2})", _HERE),
    ("azure-sas", ("sig=",), r"(?<=[?&;])sig=(?P<secret>[A-Za-z0-9%+/]{40,90}(?:%3D|%3d|=){0,2})", _HERE),
    ("azure-entra", ("Q~",), r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-])", (4, 4), token_mixed),
    ("azure-devops", ("AZDO",), r"[A-Za-z0-9]{72,80}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])", (72, 80), token_like),
    ("azure", ("JQQJ99",), r"[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26}(?![A-Za-z0-9])", (52, 52), token_like),
    ("azure", ("+ASt", "ACDb", "+ABa", "+AMC", "+AIoT", "APIM"), r"[A-Za-z0-9+/]{76}(?:\+ASt|ACDb|\+ABa|\+AMC|APIM)[A-Za-z0-9+/]{4,6}[AQgw]==", (76, 76), token_like),
    ("azure", ("AzFu", "AzSe", "AzCa", "AzEG", "AIoT", "+ACR", "AzMP"), r"[A-Za-z0-9+/_-]{33,48}(?:AzFu|AzSe|AzCa|AzEG|AIoT|\+ACR|AzMP)[A-Za-z0-9+/_-]{5,7}={0,2}(?![A-Za-z0-9+/])", (33, 48), token_like),
    ("firebase", (":APA91b",), r":(?P<secret>APA91b[A-Za-z0-9_-]{100,180})", _HERE, token_like),
    ("teams-webhook", (".webhook.office.com/",), r"\.webhook\.office\.com/webhookb2/[A-Za-z0-9@-]{60,90}/[A-Za-z]{5,30}/[a-f0-9]{32}/[A-Za-z0-9-]{30,80}(?:/[A-Za-z0-9_-]{20,80})?", _HERE),
    ("discord-webhook", ("/api/webhooks/",), r"/api/webhooks/\d{17,20}/[A-Za-z0-9_-]{60,80}", _HERE),
    ("zapier-webhook", ("hooks.zapier.com/",), r"hooks\.zapier\.com/hooks/catch/\d{5,9}/[A-Za-z0-9]{6,24}", _HERE),
    ("putty", ("Private-Lines:",), r"Private-Lines: \d{1,3}\s{1,2}(?P<secret>(?:[A-Za-z0-9+/=]{16,76}\s{1,2}){2,200}[A-Za-z0-9+/=]{0,76})", _HERE),
    ("private-key", ("-----BEGIN",), r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:[\s\\nr\"'+,]{0,12}[A-Za-z0-9-]{1,20}: [^\n\\]{1,90}){0,5}[\s\\nrt\"'+,>|]{0,40}[A-Za-z0-9+/=]{16}(?:(?!-----)[A-Za-z0-9+/=\s\\\"',.:>|-]){32,60000}(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?", _HERE),
    ("wireguard", ("PrivateKey", "PresharedKey"), r"(?:PrivateKey|PresharedKey) ?= ?(?P<secret>[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)", _HERE),
    ("docker", ('"auth":',), r'"auth":\s{0,4}"(?P<secret>[A-Za-z0-9+/]{12,400}={0,2})"', _HERE, basic_credentials),
    ("kubernetes", ("client-key-data:",), r"client-key-data:\s{1,4}(?P<secret>[A-Za-z0-9+/]{100,8000}={0,2})", _HERE),
    ("sidekiq", ("gems.contribsys.com", "enterprise.contribsys.com"), r"[a-f0-9]{8}:[a-f0-9]{8}@(?:gems|enterprise)\.contribsys\.com", (18, 18)),
    ("gitlab-session", ("_gitlab_session=",), r"_gitlab_session=(?P<secret>[a-z0-9]{32,64})", _HERE),
    ("discord", ("MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"), r"[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}(?![A-Za-z0-9_.-])", _HERE, token_mixed),
)  # fmt: skip

_H32, _H40, _H64 = _hex(32), _hex(40), _hex(64)

NAMED: tuple[tuple[str, str, str], ...] = (
    ("adafruit", "adafruit aio_", "(?:aio_[A-Za-z0-9]{28}|" + _url(32) + ")"),
    ("airtable", "airtable", "key" + _alnum(14)),
    ("algolia", "algolia", _lower(32)),
    ("amplitude", "amplitude", _H32),
    ("asana", "asana", _lower(32)),
    ("assemblyai", "assemblyai", _H32),
    ("atlassian", "atlassian jira confluence", _alnum(24)),
    ("auth0", "auth0", _url(64)),
    ("aws-secret", "aws amazon secret_access secretaccess", _base64(40)),
    ("azure", "azure cognitive openai", "(?:" + _H32 + "|" + _alnum(84) + ")"),
    ("beamer", "beamer", "b_" + _of("A-Za-z0-9=_-", 44)),
    ("bitbucket", "bitbucket", "(?:" + _of("a-zA-Z0-9_=-", 64) + "|" + _alnum(32) + ")"),
    ("bittrex", "bittrex", _H32),
    ("box", "box_", _alnum(32)),
    ("bugsnag", "bugsnag", _H32),
    ("cloudflare", "cloudflare cf_api", "(?:" + _url(40) + "|" + _hex(37) + ")"),
    ("cloudinary", "cloudinary", _url(27)),
    ("codecov", "codecov", "(?:" + _UUID + "|" + _lower(32) + ")"),
    ("cohere", "cohere", _alnum(40)),
    ("coinbase", "coinbase", _url(64)),
    ("confluent", "confluent", "(?:cflt" + _base64(60) + "|" + _base64(64) + "|" + _alnum(16) + ")"),
    ("contentful", "contentful", _of("A-Za-z0-9=_-", 43)),
    ("datadog", "datadog dd_api dd_app dd-api dd-app", "(?:" + _H40 + "|" + _H32 + ")"),
    ("deepgram", "deepgram", _H40),
    ("discord", "discord", "(?:" + _url(24, 28) + r"\." + _url(6) + r"\." + _url(27, 45) + "|" + _H64 + "|" + _url(32) + ")"),
    ("drone", "drone", _alnum(32)),
    ("dropbox", "dropbox", "(?:" + _lower(15) + "|" + _alnum(11) + "AAAAAAAAAA" + _of("a-z0-9=_-", 43) + ")"),
    ("etsy", "etsy", _lower(24)),
    ("exa", "exa_api", _UUID),
    ("facebook", "facebook fb_app", r"(?:\d{14,17}\|[A-Za-z0-9_-]{27}|[a-f0-9]{32})"),
    ("fastly", "fastly", _of("A-Za-z0-9=_-", 32)),
    ("finicity", "finicity", "(?:" + _H32 + "|" + _lower(20) + ")"),
    ("finnhub", "finnhub", _lower(20)),
    ("flickr", "flickr", _H32),
    ("freshbooks", "freshbooks", _H64),
    ("ghost", "ghost", _hex(24) + ":" + _H64),
    ("gitter", "gitter", _url(40)),
    ("heroku", "heroku", _UUID),
    ("hetzner", "hetzner hcloud", _alnum(64)),
    ("hubspot", "hubspot", _UUID),
    ("ibm-cloud", "ibm_ ibmcloud bluemix", _url(44)),
    ("intercom", "intercom", _of("A-Za-z0-9=_-", 60)),
    ("jfrog", "jfrog artifactory bintray xray", _alnum(64, 73)),
    ("kaggle", "kaggle", _H32),
    ("kraken", "kraken", _of("A-Za-z0-9+/=_-", 80, 90)),
    ("kucoin", "kucoin", "(?:" + _hex(24) + "|" + _UUID + ")"),
    ("launchdarkly", "launchdarkly", _of("A-Za-z0-9=_-", 40)),
    ("linear", "linear", _H32),
    ("linkedin", "linkedin", _alnum(14, 16)),
    ("linode", "linode", _H64),
    ("looker", "looker", _lower(20, 24)),
    ("mailchimp", "mailchimp", _H32 + r"-us\d\d?"),
    ("mailgun", "mailgun", "(?:" + _H32 + "-" + _hex(8) + "-" + _hex(8) + "|" + _H32 + ")"),
    ("mailjet", "mailjet", _H32),
    ("mattermost", "mattermost", _lower(26)),
    ("messagebird", "messagebird", "(?:" + _lower(25) + "|" + _UUID + ")"),
    ("mistral", "mistral", _alnum(32)),
    ("mixpanel", "mixpanel", _H32),
    ("netlify", "netlify", _of("A-Za-z0-9=_-", 40, 46)),
    ("new-relic", "newrelic new_relic new-relic", "(?:" + _lower(64) + "|" + _hex(40) + ")"),
    ("ngrok", "ngrok", r"[A-Za-z0-9]{20,30}_[A-Za-z0-9]{15,30}"),
    ("nytimes", "nytimes", _of("A-Za-z0-9=_-", 32)),
    ("okta", "okta", "00" + _of("A-Za-z0-9=_-", 40)),
    ("openweather", "openweather owm_", _H32),
    ("opsgenie", "opsgenie", _UUID),
    ("ovh", "ovh", _alnum(32)),
    ("pagerduty", "pagerduty", _of("A-Za-z0-9+_-", 20)),
    ("paypal", "paypal", _url(80)),
    ("plaid", "plaid", "(?:" + _hex(30) + "|" + _hex(24) + ")"),
    ("postmark", "postmark", _UUID),
    ("pusher", "pusher", _hex(20)),
    ("railway", "railway", _UUID),
    ("rapidapi", "rapidapi", _url(50)),
    ("rollbar", "rollbar", _H32),
    ("scaleway", "scaleway scw", _UUID),
    ("segment", "segment", _url(32)),
    ("sendbird", "sendbird", "(?:" + _H40 + "|" + _UUID + ")"),
    ("sentry", "sentry", _H64),
    ("serpapi", "serpapi", _H64),
    ("shodan", "shodan", _alnum(32)),
    ("sidekiq", "sidekiq contribsys", _hex(8) + ":" + _hex(8)),
    ("snyk", "snyk", _UUID),
    ("sparkpost", "sparkpost", _H40),
    ("splunk", "splunk", _UUID),
    ("spotify", "spotify", _H32),
    ("square", "squareup", _url(43, 64)),
    ("squarespace", "squarespace", _UUID),
    ("sumologic", "sumo", "(?:su" + _alnum(12) + "|" + _alnum(64) + ")"),
    ("travis", "travis", _alnum(22)),
    ("together", "together", _H64),
    ("trello", "trello", "(?:" + _alnum(32) + "|" + _H64 + ")"),
    ("twilio", "twilio", _H32),
    ("twitch", "twitch", _lower(30)),
    ("twitter", "twitter", "(?:" + _alnum(45) + "|" + _alnum(50) + "|" + _alnum(25) + "|" + r"\d{15,25}-" + _alnum(20, 40) + ")"),
    ("vault", "vault", r"s\.[A-Za-z0-9]{24}"),
    ("vercel", "vercel", _alnum(24)),
    ("virustotal", "virustotal vt_api", _H64),
    ("vonage", "vonage nexmo", _alnum(16)),
    ("vultr", "vultr", _upper(36)),
    ("wandb", "wandb", _H40),
    ("yandex", "yandex", "(?:AQVN" + _url(35, 38) + "|YC" + _url(38) + ")"),
    ("zendesk", "zendesk", _alnum(40)),
    ("zhipu", "zhipu bigmodel", _H32 + r"\." + _alnum(16)),
)  # fmt: skip


def either(literals: tuple[str, ...]) -> str:
    """Return the pattern for one of the literals."""
    return "(?:" + "|".join(re.escape(literal) for literal in literals) + ")"


def provider_rules() -> list[Rule]:
    """Return the rules of the three tables, in their order."""
    rules = []
    for name, words, rest, *checks in TOKENS:
        literals = tuple(words.split())
        rules.append(
            Rule(name, literals, either(literals) + rest, checks[0] if checks else token_like, edge=True)
        )
    for name, literals, pattern, back, *checks in SHAPES:
        edge = back != _HERE or name in ("jwt", "discord")
        rules.append(Rule(name, literals, pattern, checks[0] if checks else None, back=back, edge=edge))
    return rules


class Named:
    """The provider-named secrets of the table NAMED: values without a form of their own."""

    def __init__(self) -> None:
        self._values: dict[str, list[tuple[str, str]]] = {}
        for name, words, value in NAMED:
            for word in words.split():
                self._values.setdefault(word, []).append((name, value))
        self._words = re.compile(trie(self._values))

    def name(self, context: str, value: str) -> str:
        """Return the provider whose secret a value is, or "".

        Parameters:
            context: the text before the value, which may name a provider.
            value: what is assigned.
        """
        for word in reversed(self._words.findall(context.lower())):
            for name, pattern in self._values[word]:
                if re.fullmatch(pattern, value):
                    return name
        return ""

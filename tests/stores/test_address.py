from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from app.domain.errors import ConfigError
from app.stores.address import CONNECT_SECONDS, parse

PASSWORD = "s3cr3t-password"


def problems_of(url: str, **options: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(url, **options)
    assert PASSWORD not in str(caught.value)
    return caught.value.problems


@pytest.mark.parametrize(
    ("url", "place", "security"),
    [
        (  # Neon, pooled
            "postgresql://neon:npg_x@ep-cool-1-pooler.aws.neon.tech/neondb?sslmode=require&channel_binding=require",
            ("ep-cool-1-pooler.aws.neon.tech", 5432, "neon", "npg_x", "neondb"),
            "require",
        ),
        (  # Neon, direct
            "postgresql://neon:npg_x@ep-cool-1.ap-southeast-1.aws.neon.tech/neondb?sslmode=require",
            ("ep-cool-1.ap-southeast-1.aws.neon.tech", 5432, "neon", "npg_x", "neondb"),
            "require",
        ),
        (  # Neon, for drivers that do not name the server in TLS
            "postgres://neon:endpoint=ep-cool-1;npg_x@ep-cool-1.aws.neon.tech/neondb?options=endpoint%3Dep-cool-1",
            ("ep-cool-1.aws.neon.tech", 5432, "neon", "endpoint=ep-cool-1;npg_x", "neondb"),
            "prefer",
        ),
        (  # Supabase, direct
            "postgresql://postgres:[YOUR-PASSWORD]@db.abcref.supabase.co:5432/postgres",
            ("db.abcref.supabase.co", 5432, "postgres", "[YOUR-PASSWORD]", "postgres"),
            "prefer",
        ),
        (  # Supabase, its pooler for sessions
            "postgresql://postgres.abcref:pw@aws-0-ap-southeast-1.pooler.supabase.com:5432/postgres",
            ("aws-0-ap-southeast-1.pooler.supabase.com", 5432, "postgres.abcref", "pw", "postgres"),
            "prefer",
        ),
        (  # Supabase, its pooler for transactions as Prisma is told of it
            "postgresql://postgres.abcref:pw@aws-0-ap-southeast-1.pooler.supabase.com:6543/postgres?pgbouncer=true",
            ("aws-0-ap-southeast-1.pooler.supabase.com", 6543, "postgres.abcref", "pw", "postgres"),
            "prefer",
        ),
        (  # the same as Vercel writes it
            "postgres://postgres.abcref:pw@aws-0-eu-1.pooler.supabase.com:6543/postgres?sslmode=require&supa=base-pooler.x",
            ("aws-0-eu-1.pooler.supabase.com", 6543, "postgres.abcref", "pw", "postgres"),
            "require",
        ),
        (  # Heroku
            "postgres://u1:p1@ec2-1-2-3-4.compute-1.amazonaws.com:5432/d1",
            ("ec2-1-2-3-4.compute-1.amazonaws.com", 5432, "u1", "p1", "d1"),
            "prefer",
        ),
        (  # Render, from inside
            "postgresql://gigs:pw@dpg-abc-a/gigs_db",
            ("dpg-abc-a", 5432, "gigs", "pw", "gigs_db"),
            "prefer",
        ),
        (  # Render, from outside
            "postgresql://gigs:pw@dpg-abc-a.singapore-postgres.render.com/gigs_db",
            ("dpg-abc-a.singapore-postgres.render.com", 5432, "gigs", "pw", "gigs_db"),
            "prefer",
        ),
        (  # Railway, from inside
            "postgresql://postgres:pw@postgres.railway.internal:5432/railway",
            ("postgres.railway.internal", 5432, "postgres", "pw", "railway"),
            "prefer",
        ),
        (  # Railway, from outside
            "postgresql://postgres:pw@roundhouse.proxy.rlwy.net:31337/railway",
            ("roundhouse.proxy.rlwy.net", 31337, "postgres", "pw", "railway"),
            "prefer",
        ),
        (  # Fly, its older clusters
            "postgres://app:pw@app-db.flycast:5432/app?sslmode=disable",
            ("app-db.flycast", 5432, "app", "pw", "app"),
            False,
        ),
        (  # Fly Managed Postgres, pooled
            "postgresql://fly-user:pw@pgbouncer.abc123.flympg.net/fly-db",
            ("pgbouncer.abc123.flympg.net", 5432, "fly-user", "pw", "fly-db"),
            "prefer",
        ),
        (  # Fly Managed Postgres, direct
            "postgresql://fly-user:pw@direct.abc123.flympg.net/fly-db",
            ("direct.abc123.flympg.net", 5432, "fly-user", "pw", "fly-db"),
            "prefer",
        ),
        (  # Amazon RDS
            "postgresql://app:p%40ss%2Fw%23rd@gigs.abc.eu-central-1.rds.amazonaws.com:5432/gigs?sslmode=require",
            ("gigs.abc.eu-central-1.rds.amazonaws.com", 5432, "app", "p@ss/w#rd", "gigs"),
            "require",
        ),
        (  # Koyeb
            "postgres://koyeb-adm:pw@ep-blue-1.eu-central-1.pg.koyeb.app/koyebdb",
            ("ep-blue-1.eu-central-1.pg.koyeb.app", 5432, "koyeb-adm", "pw", "koyebdb"),
            "prefer",
        ),
        (  # Aiven and DigitalOcean
            "postgres://avnadmin:pw@pg-1.aivencloud.com:12345/defaultdb?sslmode=require",
            ("pg-1.aivencloud.com", 12345, "avnadmin", "pw", "defaultdb"),
            "require",
        ),
        (  # Cloud SQL, by its socket
            "postgresql://app:pw@/app?host=/cloudsql/project:region:name",
            ("/cloudsql/project:region:name", 5432, "app", "pw", "app"),
            False,
        ),
        (  # as SQLAlchemy is told
            "postgresql+asyncpg://app:pw@db.example/app?ssl=require",
            ("db.example", 5432, "app", "pw", "app"),
            "require",
        ),
        (  # as node-postgres is told
            "POSTGRES://app:pw@db.example/app?sslmode=no-verify",
            ("db.example", 5432, "app", "pw", "app"),
            "require",
        ),
        ("postgres://[2001:db8::1]:6432/app", ("2001:db8::1", 6432, None, None, "app"), "prefer"),
        ("postgres://[::1]/app", ("::1", 5432, None, None, "app"), False),
        ("postgres://app@localhost", ("localhost", 5432, "app", None, None), False),
        (
            "postgresql://postgres@/postgres?host=%2Fdir%2Fa%20b",
            ("/dir/a b", 5432, "postgres", None, "postgres"),
            False,
        ),
        ("postgresql://%2Fvar%2Frun/app", ("/var/run", 5432, None, None, "app"), False),
        (
            "postgresql://?host=db.example&port=6432&user=a@b&password=x+y&dbname=app",
            ("db.example", 6432, "a@b", "x+y", "app"),
            "prefer",
        ),
    ],
)
def test_a_providers_url_is_read_as_it_stands(url: str, place: tuple[object, ...], security: object):
    address = parse(url)

    assert (address.host, address.port, address.user, address.password, address.database) == place
    assert address.ssl == security


@pytest.mark.parametrize(
    ("written", "password"),
    [
        ("p%40ss%3Aw%2Ford", "p@ss:w/ord"),
        ("p@ss:word", "p@ss:word"),
        ("p?ss#w[o]rd&a=b", "p?ss#w[o]rd&a=b"),
        ("[YOUR-PASSWORD]", "[YOUR-PASSWORD]"),
        ("a+b%2Bc", "a+b+c"),
        ("100%", "100%"),
        ("%E0%B8%81", "ก"),
        ("", None),
    ],
)
def test_a_password_may_hold_anything(written: str, password: str | None):
    address = parse(f"postgresql://app:{written}@db.example:6432/name?sslmode=require")

    assert (address.user, address.password, address.host, address.port) == ("app", password, "db.example", 6432)
    assert (address.database, address.ssl) == ("name", "require")


@pytest.mark.parametrize(
    "url",
    [
        f"postgres://app:ab/{PASSWORD}@db.example/name",
        f"postgres://app:{PASSWORD}/ab@db.example/name",
        f"postgres://app:12/{PASSWORD}?x@db.example/name",
        f"postgres://db.example/name?{PASSWORD}@x=1",
        f"postgres://db.example/name?{PASSWORD}=1@x",
    ],
)
def test_a_password_that_breaks_the_url_is_told_and_not_shown(url: str):
    [told] = problems_of(url)

    assert "%2F" in told


def test_the_password_shows_nowhere():
    address = parse(f"postgres://app:{PASSWORD}@db.example/name")

    assert PASSWORD not in repr(address)
    assert PASSWORD not in str(address)
    assert address.shown == "db.example/name"


def test_several_hosts_each_have_their_port():
    address = parse("postgres://u@a.example,b.example:6432,c.example:7432/name?target_session_attrs=read-write")

    assert address.host == ["a.example", "b.example", "c.example"]
    assert address.port == [5432, 6432, 7432]
    assert address.session == "read-write"
    assert address.shown == "a.example,b.example,c.example/name"


def test_one_port_in_the_query_is_for_all_hosts():
    assert parse("postgres:///name?host=a,b&port=6432").port == [6432, 6432]


def test_what_means_nothing_here_is_dropped_and_named():
    address = parse(
        "postgres://db.example/n?pgbouncer=true&connection_limit=1&options=endpoint%3Dep-1&keepalives=1&supa=x"
        "&channel_binding=require&schema=public&sslmode=require",
    )

    assert address.dropped == (
        "channel_binding",
        "connection_limit",
        "keepalives",
        "options",
        "pgbouncer",
        "schema",
        "supa",
    )


def test_the_last_of_a_repeated_key_counts():
    address = parse("postgres://db.example/n?sslmode=disable&sslmode=require&application_name=a&application_name=b")

    assert (address.ssl, address.application_name) == ("require", "b")


def test_an_empty_value_is_as_if_it_were_not_there():
    address = parse("postgres://db.example/n?sslmode=&connect_timeout=&application_name=")

    assert (address.ssl, address.connect_seconds, address.application_name) == ("prefer", CONNECT_SECONDS, "wakebell")


@pytest.mark.parametrize(("given", "seconds"), [("3", 3), ("0", CONNECT_SECONDS), ("60", CONNECT_SECONDS)])
def test_a_connection_takes_no_longer_than_a_tick_can_bear(given: str, seconds: float):
    assert parse(f"postgres://db.example/n?connect_timeout={given}").connect_seconds == seconds


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("", "is not set"),
        ("   ", "is not set"),
        ("db.example/name", "no scheme"),
        ("postgres:db.example/name", "no scheme"),
        (f"app:{PASSWORD}@db.example/name", "no scheme"),
        (f"app:{PASSWORD}://db.example/name", "no scheme"),
        ("mysql://db.example/name", '"mysql://"'),
        ("psql 'postgresql://db.example/name'", 'begins with "psql"'),
        ("postgres://", "names no host"),
        ("postgres:///name", "names no host"),
        ("postgres://a.example,/name", "names no host"),
        ("postgres://db.example:0/name", "port must be a number from 1 to 65535"),
        ("postgres://db.example:65536/name", "port must be a number from 1 to 65535"),
        ("postgres://db.example:99999999999999999999/name", "port must be a number from 1 to 65535"),
        ("postgres://db.example:port/name", "port must be a number from 1 to 65535"),
        ("postgres:///name?host=a,b,c&port=1,2", "3 hosts and 2 ports"),
        ("postgres://db.example/name?sslmode=nonsense", 'sslmode "nonsense" is not known'),
        ("postgres://db.example/name?connect_timeout=soon", "connect_timeout must be a whole number"),
        ("postgres://db.example/name?target_session_attrs=some", "target_session_attrs is not known"),
        ("postgres://db.example/name?sslmoed=require", 'the key "sslmoed" is not known; remove it'),
        ("postgres://db.example/name?sslmode=verify-full&sslrootcert=/nowhere/ca.pem", "No such file"),
        ("postgres://db.example/name?sslmode=require&sslrootcert=system", None),
        (
            "postgres://db.example/name?sslmode=prefer&sslrootcert=system",
            "sslrootcert=system needs sslmode=verify-full",
        ),
        ("postgres://app:p w@db.example/name", "space or a control character"),
        ("postgres://app:p%00w@db.example/name", "space or a control character"),
    ],
)
def test_what_cannot_be_used_is_told_by_name(url: str, told: str | None):
    if told is None:
        assert isinstance(parse(url).ssl, ssl.SSLContext)
        return

    [problem] = problems_of(url, name="MIGRATION_DATABASE_URL")

    assert problem.startswith("MIGRATION_DATABASE_URL: ")
    assert told in problem


def test_all_problems_are_told_at_once():
    problems = problems_of("postgres://db.example:0/name?sslmode=x&connect_timeout=y&one=1&two=2")

    assert len(problems) == 5


def context_of(query: str) -> ssl.SSLContext:
    context = parse(f"postgres://db.example/name?{query}").ssl
    assert isinstance(context, ssl.SSLContext)
    return context


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate to trust: one of those of this machine."""
    [first, *_] = ssl.create_default_context().get_ca_certs(binary_form=True)
    path = tmp_path_factory.mktemp("roots") / "root.pem"
    path.write_text(ssl.DER_cert_to_PEM_cert(first))
    return path


@pytest.mark.parametrize(
    ("mode", "verified", "by_name"),
    [
        ("require", ssl.CERT_REQUIRED, False),
        ("verify-ca", ssl.CERT_REQUIRED, False),
        ("verify-full", ssl.CERT_REQUIRED, True),
    ],
)
def test_a_given_root_is_verified_against(root: Path, mode: str, verified: ssl.VerifyMode, by_name: bool):  # noqa: FBT001
    context = context_of(f"sslmode={mode}&sslrootcert={root}")

    assert (context.verify_mode, context.check_hostname) == (verified, by_name)
    assert len(context.get_ca_certs()) == 1, "no other root is trusted"


def test_amazons_address_is_verified_by_its_own_root(root: Path):
    address = parse(f"postgresql://app:pw@gigs.abc.rds.amazonaws.com:5432/gigs?sslmode=verify-full&sslrootcert={root}")

    assert (address.host, address.user, address.database) == ("gigs.abc.rds.amazonaws.com", "app", "gigs")
    assert isinstance(address.ssl, ssl.SSLContext)
    assert address.ssl.check_hostname


@pytest.mark.parametrize(
    "query", ["sslrootcert=system", "sslmode=verify-full&sslrootcert=system", "sslmode=verify-full"]
)
def test_the_systems_roots_verify_the_name_too(query: str):
    context = context_of(query)

    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_roots_that_libpq_takes_are_taken(root: Path):
    assert not context_of(f"sslmode=verify-full&sslrootcert={root}").verify_flags & ssl.VERIFY_X509_STRICT


def test_a_root_is_not_asked_for_where_nothing_is_verified(root: Path):
    assert parse(f"postgres://db.example/name?sslmode=prefer&sslrootcert={root}").ssl == "prefer"


def test_a_file_that_is_no_certificate_is_told(tmp_path: Path):
    (tmp_path / "root.pem").write_text("nothing of the kind")

    [problem] = problems_of(f"postgres://db.example/n?sslmode=verify-ca&sslrootcert={tmp_path / 'root.pem'}")

    assert "cannot be used" in problem


def test_a_missing_client_certificate_is_told():
    [problem] = problems_of("postgres://db.example/n?sslmode=require&sslcert=/nowhere/me.crt&sslkey=/nowhere/me.key")

    assert "No such file" in problem


def test_an_address_says_where_it_came_from():
    assert parse("postgres://db.example/n", name="MIGRATION_DATABASE_URL").name == "MIGRATION_DATABASE_URL"

import asyncpg
import pytest
import respx

from app.domain.errors import PermanentFailure, TemporaryFailure
from app.domain.jobs import Discard, Done

MAIL = "https://api.resend.com/emails"
USERS = "CREATE TABLE public.users (id int PRIMARY KEY, email text, name text, welcomed_at timestamptz)"


@pytest.fixture(autouse=True)
def token(monkeypatch):
    monkeypatch.setenv("MAIL_TOKEN", "secret")


@pytest.fixture
async def users(queue):
    db = await asyncpg.connect(queue.url)
    await db.execute(USERS)
    await db.execute("INSERT INTO public.users VALUES (17, 'nok@example.org', 'Nok')")
    yield db
    await db.close()


@respx.mock
async def test_a_user_is_welcomed_once(queue, users):
    mail = respx.post(MAIL).respond(json={"id": "1"})

    assert await queue.run("send_welcome_email", {"user_id": 17}) == Done()
    assert await queue.run("send_welcome_email", {"user_id": 17}) == Discard("was welcomed already")

    assert mail.call_count == 1
    assert mail.calls[0].request.headers["idempotency-key"] == "welcome/17"
    assert await users.fetchval("SELECT welcomed_at IS NOT NULL FROM public.users")


@respx.mock
async def test_whoever_has_left_is_written_to_no_more(queue, users):
    assert await queue.run("send_welcome_email", {"user_id": 18}) == Discard("there is no such user any more")


@pytest.mark.parametrize(("status", "failure"), [(500, TemporaryFailure), (429, TemporaryFailure), (422, PermanentFailure)])
@respx.mock
async def test_what_the_provider_refuses_is_tried_again_or_given_up(queue, users, status, failure):
    respx.post(MAIL).respond(status)

    with pytest.raises(failure):
        await queue.run("send_welcome_email", {"user_id": 17})

    assert await users.fetchval("SELECT welcomed_at IS NULL FROM public.users")


async def test_a_signup_that_rolls_back_leaves_no_job_and_one_that_commits_leaves_one(queue, users):
    async def sign_up(user, *, fails=False):
        async with users.transaction():
            await users.execute("INSERT INTO public.users VALUES ($1, 'a@example.org', 'A')", user)
            await users.execute(
                "SELECT wakebell.enqueue('send_welcome_email', jsonb_build_object('user_id', $1::int))", user
            )
            if fails:
                raise RuntimeError("the card was refused")

    with pytest.raises(RuntimeError):
        await sign_up(18, fails=True)
    await sign_up(19)

    assert [job.payload for job in await queue.jobs(type="send_welcome_email")] == [{"user_id": 19}]

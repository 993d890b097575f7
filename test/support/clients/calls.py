"""The program of a platform with the generated Python client, which is the package `client` on the path."""

import datetime
import os
import time

from client import AuthenticatedClient
from client.api.api_keys import create_api_key, list_api_keys, revoke_api_key, rotate_api_key
from client.api.apps import create_app, delete_app, estimate_app_resend, get_app, list_apps, update_app
from client.api.audit_log import list_audit_events
from client.api.deliveries import get_delivery, get_resend, get_source_ips, list_resends, resend_delivery
from client.api.overview import find_apps, find_by_id, find_webhooks, get_overview
from client.api.people import (
    create_invitation, delete_person, end_person_sessions, get_people_settings, get_person, list_invitations, list_people,
    revoke_invitation, update_people_settings, update_person,
)
from client.api.portal import create_portal_link, get_portal_settings, list_portal_links, revoke_portal_link
from client.api.projects import create_project, delete_project, get_project, list_projects, update_project
from client.api.statistics import get_stats
from client.api.webhook_messages import create_message, get_message, list_message_deliveries, list_messages
from client.api.webhooks import (
    create_webhook, delete_webhook, get_webhook, get_webhook_health, list_webhooks, rotate_webhook_secret,
    start_webhook_resend, test_webhook, update_webhook,
)
from client import models

client = AuthenticatedClient(
    base_url=os.environ["BASE_URL"],
    token=os.environ["API_KEY"],
    auth_header_name="x-api-key",
    prefix="",
    raise_on_unexpected_status=True,
)
company = os.environ["COMPANY_ID"]
receiver = os.environ["RECEIVER_URL"]
called = {}


def call(operation, model, *args, **fields):
    """Returns the answer of a success, which the client has made a model of this class."""
    answer = operation.sync(*args, client=client, **fields)
    assert isinstance(answer, model), f"{operation.__name__}: {answer!r}"
    called[operation.__name__.rpartition(".")[2]] = True
    return answer


def ended(delivery_id):
    """Reads a delivery until it has ended."""
    while True:
        delivery = call(get_delivery, models.DeliveryResponse, delivery_id).data
        if delivery.status != models.DeliveryStatus.PENDING:
            return delivery
        time.sleep(0.1)


project = call(create_project, models.CreatedProjectResponse, body=models.CreateProject(name="Shop")).data
assert isinstance(project.created_at, datetime.datetime)
call(update_project, models.ProjectResponse, project.id, body=models.UpdateProject(description="Of Acme"))
read = call(get_project, models.ProjectResponse, project.id).data
assert (read.company, read.description) == (company, "Of Acme")
projects = call(list_projects, models.ProjectListResponse, companyid=company).data
assert project.id in [each.id for each in projects]

app = call(create_app, models.AppResponse, body=models.CreateApp(name="Acme", project_id=project.id)).data
assert app.environment == models.AppEnvironment.DEVELOPMENT
call(update_app, models.AppResponse, app.id, companyid=company, body=models.UpdateApp(description="A customer"))
assert call(get_app, models.AppResponse, app.id, companyid=company).data.description == "A customer"
assert len(call(list_apps, models.AppListResponse, companyid=company, project_id=project.id).data) == 1

good = call(create_webhook, models.WebhookWithAuthResponse, body=models.CreateWebhook(url=receiver, app_id=app.id)).data
assert isinstance(good.auth_method, models.HmacAuth) and good.auth_method.hmac_secret == good.secret
bad = call(
    create_webhook,
    models.WebhookWithAuthResponse,
    body=models.CreateWebhook(
        url=f"{receiver}/bad",
        app_id=app.id,
        auth_method=models.AuthMethodName.BASIC,
        basic_auth_username="me",
        basic_auth_password="secret",
    ),
).data
shown = call(get_webhook, models.WebhookWithAuthResponse, bad.id).data.auth_method
assert isinstance(shown, models.BasicAuth) and shown.password == "secret"
headers = [models.CustomHeader(key="X-Tenant", value="acme")]
changed = call(update_webhook, models.WebhookResponse, good.id, body=models.UpdateWebhook(custom_headers=headers)).data
assert changed.custom_headers[0].value == "acme"
assert len(call(list_webhooks, models.WebhookListResponse, app_id=app.id).data) == 2
rotated = call(rotate_webhook_secret, models.WebhookResponse, good.id, body=models.RotateSecret(grace_seconds=60)).data
assert rotated.secret != good.secret
assert call(test_webhook, models.DeliveryResponse, good.id).data.webhook_id == good.id

payload = models.CreateMessagePayload.from_dict({"order": 17})
body = models.CreateMessage(app_id=app.id, event_type="order.paid", payload=payload)
sent = call(create_message, models.CreatedMessageResponse, body=body, idempotency_key="order-17-python").data
again = call(create_message, models.CreatedMessageResponse, body=body, idempotency_key="order-17-python").data
assert sent.id == again.id and len(sent.deliveries) == 2
statuses = {each.webhook_id: each for each in [ended(each.id) for each in sent.deliveries]}
delivered, failed = statuses[good.id], statuses[bad.id]
assert delivered.status == models.DeliveryStatus.DELIVERED, delivered
assert failed.status == models.DeliveryStatus.EXHAUSTED, failed
assert delivered.attempts[0].outcome == models.MadeAttemptOutcome.SUCCESS
assert call(get_message, models.MessageResponse, sent.id).data.payload == '{"order": 17}'.replace(" ", "")
assert len(call(list_messages, models.ListedMessageListResponse, app_id=app.id, limit=1).data) <= 1
page = call(list_message_deliveries, models.DeliveryListResponse, sent.id)
assert len(page.data) == 2

assert call(resend_delivery, models.DeliveryResponse, failed.id).data.id == failed.id
since = project.created_at
assert call(estimate_app_resend, models.ResendEstimateResponse, app.id, since=since).data.total >= 1
span = models.ResendFailedOfWebhook(since=since)
resend = call(start_webhook_resend, models.ResendResponse, bad.id, body=span).data
assert (resend.webhook_id, resend.app_id) == (bad.id, None)
assert call(get_resend, models.ResendResponse, resend.id).data.id == resend.id
assert call(list_resends, models.ResendListResponse, webhook_id=bad.id).data

assert call(get_webhook_health, models.WebhookHealthResponse, good.id).data.backlog >= 0
assert call(get_stats, models.StatsResponse, step=models.GetStatsStep.HOUR).data.points is not None
assert call(get_overview, models.OverviewResponse, app_id=app.id).data.series
assert call(find_by_id, models.FoundResponse, id=sent.id).data.kind == models.FoundKind.MESSAGE
assert app.id in [each.id for each in call(find_apps, models.FoundAppListResponse, text="acme").data]
assert len(call(find_webhooks, models.FoundWebhookListResponse, app_id=app.id).data) == 2
call(get_source_ips, models.SourceIpsResponse)
events = call(list_audit_events, models.AuditEventListResponse, limit=5).data
assert all(isinstance(each.actor, models.ApiKeyActor) for each in events)

key = call(create_api_key, models.CreatedApiKeyResponse, body=models.CreateApiKey(name="Second")).data
renewal = models.RotateApiKey(grace_seconds=0)
renewed = call(rotate_api_key, models.CreatedApiKeyResponse, key.id, body=renewal).data
assert renewed.key != key.key
assert renewed.id in [each.id for each in call(list_api_keys, models.ApiKeyListResponse).data]
call(revoke_api_key, models.EmptyResponse, renewed.id)
view = [models.CreatePortalLinkCapabilitiesItem.VIEW]
asked = models.CreatePortalLink(expires_in_seconds=60, capabilities=view)
link = call(create_portal_link, models.PortalLinkResponse, app.id, body=asked).data
assert link.id in [each.id for each in call(list_portal_links, models.ListedPortalLinkListResponse, app_id=app.id).data]
call(revoke_portal_link, models.EmptyResponse, link.id)
assert call(get_portal_settings, models.PortalSettingsResponse).data.origins == []

person = call(list_people, models.PersonListResponse).data[0]
assert (person.role, person.source) == (models.Role.VIEWER, models.PersonSource.INVITATION)
changed = call(update_person, models.PersonResponse, person.id, body=models.UpdatePerson(role=models.Role.SUPPORT)).data
assert changed.role == models.Role.SUPPORT
assert call(get_person, models.PersonWithSessionsResponse, person.id).data.sessions == []
assert call(end_person_sessions, models.EndedSessionsResponse, person.id, body=models.EndPersonSessions()).data.ended == 0
roles = models.UpdatePeopleSettings.from_dict({"groups": [{"group": f"{company}-python", "role": "viewer"}]})
call(update_people_settings, models.PeopleSettingsResponse, body=roles)
assert call(get_people_settings, models.PeopleSettingsResponse).data.groups[0].role == models.Role.VIEWER
invited = call(
    create_invitation,
    models.CreatedInvitationResponse,
    body=models.CreateInvitation(role=models.Role.VIEWER, name="Guest"),
).data
assert invited.id in [each.id for each in call(list_invitations, models.InvitationListResponse).data]
call(revoke_invitation, models.EmptyResponse, invited.id)
call(delete_person, models.EmptyResponse, person.id)

refused = get_webhook.sync("wh_none", client=client)
assert isinstance(refused, models.Failure) and refused.code == "not_found"

call(delete_webhook, models.EmptyResponse, bad.id)
call(delete_app, models.EmptyResponse, app.id, companyid=company)
call(delete_project, models.EmptyResponse, project.id)
print("\n".join(called))

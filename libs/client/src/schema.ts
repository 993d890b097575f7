// Written by `node libs/client/write-api-types.ts` from the routes and error codes of the gateway.

export interface paths {
    "/projects": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the projects, oldest first */
        get: operations["listProjects"];
        put?: never;
        /** Create a project */
        post: operations["createProject"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/projects/{projectId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a project */
        get: operations["getProject"];
        /**
         * Update a project
         * @description Fields that are left out keep their values, and null takes one away.
         */
        put: operations["updateProject"];
        post?: never;
        /**
         * Delete a project
         * @description Deletes its apps and webhooks too, and cancels their pending deliveries. Messages and deliveries stay readable.
         */
        delete: operations["deleteProject"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/apps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the apps of a project, oldest first */
        get: operations["listApps"];
        put?: never;
        /** Create an app in a project */
        post: operations["createApp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/apps/{appId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an app */
        get: operations["getApp"];
        /**
         * Update an app
         * @description Fields that are left out keep their values, and null takes one away.
         */
        put: operations["updateApp"];
        post?: never;
        /**
         * Delete an app
         * @description Deletes its webhooks too, and cancels their pending deliveries. Messages and deliveries stay readable.
         */
        delete: operations["deleteApp"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/projects/{projectId}/event-types": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the event types of a project by name
         * @description Without `schema` and `example`.
         */
        get: operations["listEventTypes"];
        put?: never;
        /** Create an event type in the catalogue of a project */
        post: operations["createEventType"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/projects/{projectId}/event-types/{eventTypeName}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an event type */
        get: operations["getEventType"];
        /**
         * Update an event type
         * @description Fields that are left out keep their values, and null takes one away. Another `schema` is another version.
         */
        put: operations["updateEventType"];
        post?: never;
        /**
         * Delete an event type
         * @description Its earlier schemas go too. Messages and the event types of webhooks stay as they are.
         */
        delete: operations["deleteEventType"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/apps/{appId}/event-types": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the event types that an app may receive, by name
         * @description Those of its project that are not archived, without `schema` and `example`.
         */
        get: operations["listAppEventTypes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/apps/{appId}/event-types/{eventTypeName}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an event type that an app may receive */
        get: operations["getAppEventType"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/projects/{projectId}/import-event-types": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Import event types from an OpenAPI document
         * @description Each webhook of the document becomes an event type, or changes the one of its name. Everything is checked before anything is changed; a repeat completes what was interrupted. The body has at most 1 MiB (1,048,576 bytes).
         */
        post: operations["importEventTypes"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/projects/{projectId}/export-event-types": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export the event types of a project as an OpenAPI document
         * @description An OpenAPI 3.1 document with a webhook for each event type that is not archived. To import it changes nothing.
         */
        get: operations["exportEventTypes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the webhooks, oldest first
         * @description A webhook whose stored secrets cannot be decrypted is left out, so a page may hold fewer than `limit`.
         */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Create a webhook
         * @description A webhook belongs to an app (`appId`), or is global (`projectId` and `environmentId`). `authMethod` decides which credential fields are required.
         */
        post: operations["createWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhookId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a webhook */
        get: operations["getWebhook"];
        /**
         * Update a webhook
         * @description Fields that are left out keep their values, and so does a custom header whose value is given as `********`. Null takes a field away, back to its default. Credential fields must belong to the current method of authentication, or to the one given in `authMethod`; a new method requires all of its own fields. Who may not see secrets gives them again with a URL of another server.
         */
        put: operations["updateWebhook"];
        post?: never;
        /**
         * Delete a webhook
         * @description Cancels its pending deliveries. Messages and deliveries stay readable.
         */
        delete: operations["deleteWebhook"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhookId}/rotate-secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate the secret of a webhook
         * @description During the grace period `webhook-signature` holds a signature of each secret. The HMAC header uses the new secret at once, unless the webhook has its own `hmacSecret`. Another rotation ends the grace period of the one before. With the `secret` that the webhook has already, nothing changes but a grace period that would last longer than `graceSeconds`.
         */
        post: operations["rotateWebhookSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhookId}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a test message to a webhook
         * @description Sends a small message and returns its delivery. `GET /api/v1/deliveries/{id}` shows how it ended.
         */
        post: operations["testWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhookId}/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the health of a webhook
         * @description Examines the attempts of the newest messages of the webhook, at most 200 messages.
         */
        get: operations["getWebhookHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhookId}/hold": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Hold the deliveries of a webhook
         * @description Attempts that come due wait, retries too, and keep their number; those under way are finished. Nothing is requested after two seconds. A repeat replaces the reason, and the end that it gives.
         */
        post: operations["holdWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhookId}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End the hold of a webhook
         * @description What waits is released in the background, oldest first, as fast as the endpoint takes it, or at `ratePerSecond`; a new message waits behind at most what the endpoint takes in some seconds. `waiting` of `GET /webhooks/{id}` shows how many are left. While its app is on hold, or its company suspended, its deliveries go on waiting.
         */
        post: operations["resumeWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/apps/{appId}/hold": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Hold the deliveries of an app
         * @description The same as the hold of a webhook, for all webhooks that the app has or gets.
         */
        post: operations["holdApp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/apps/{appId}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End the hold of an app
         * @description What waits is released as for a webhook, several webhooks at a time. A webhook with a hold of its own stays on hold.
         */
        post: operations["resumeApp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhookId}/ordering-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the ordering keys whose deliveries wait, blocked ones first
         * @description Each kind oldest first. A key whose deliveries follow each other without a failure is not listed. A page may hold fewer entries than `limit`, or none, although `nextCursor` is not null.
         */
        get: operations["listOrderingKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhookId}/ordering-keys/skip": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Go on behind the exhausted delivery of an ordering key
         * @description The next delivery of the key begins within a second. The exhausted one stays so, and may be sent again.
         */
        post: operations["skipOrderingKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhookId}/resend-failed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resend the failed deliveries of a webhook
         * @description Makes one attempt for each exhausted or cancelled delivery that was created from `since` to `until`, or for those of one `outcome`. Attempts run in the background, oldest delivery first. Only one such resend of a webhook runs at a time. `GET /api/v1/resends/{id}` shows the progress.
         */
        post: operations["startWebhookResend"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/apps/{appId}/resend-failed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resend the failed deliveries of an app
         * @description Makes one attempt for each exhausted or cancelled delivery to a webhook of the app that was created from `since` to `until`. Attempts run in the background, for several webhooks at a time, oldest delivery of each first. Disabled webhooks are left out. When an endpoint keeps failing for five minutes, its remaining deliveries are not sent: they count as `failed` and keep their status. Only one resend of an app runs at a time. `GET /api/v1/resends/{id}` shows the progress.
         */
        post: operations["startAppResend"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhookId}/resend-failed/estimate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count the failed deliveries of a webhook
         * @description Returns how many deliveries `resend-failed` would send again now.
         */
        get: operations["estimateWebhookResend"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/apps/{appId}/resend-failed/estimate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count the failed deliveries of an app
         * @description Returns how many deliveries `resend-failed` would send again now: those to enabled webhooks of the app.
         */
        get: operations["estimateAppResend"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhookId}/replay-missing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a webhook messages that it has missed
         * @description Sends the messages of the app that were created from `since` to `until`, that the webhook is not among the targets of and that have an event type which it receives now. They become deliveries of it like all others, with their retries, oldest message first, in the background. A message is added once, however often this is repeated. One replay or resend of a webhook runs at a time; `GET /api/v1/resends/{id}` shows the progress.
         */
        post: operations["startReplay"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhookId}/replay-missing/estimate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count the messages that a webhook has missed
         * @description Returns how many messages `replay-missing` would send now.
         */
        get: operations["estimateReplay"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/test-filter": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test a filter
         * @description Returns whether a message passes the filter of a webhook, and the first condition that fails. Nothing is stored or sent.
         */
        post: operations["testFilter"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhook-messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List messages, newest first
         * @description One request examines a limited number of messages and deliveries. A page ends after 1 MB of payloads. It may therefore hold fewer entries than `limit`, or none, although `nextCursor` is not null.
         */
        get: operations["listMessages"];
        put?: never;
        /**
         * Send a message
         * @description Sends a message to the webhooks of an app that select its event type, or to one webhook. The response comes once the message is stored durably; deliveries follow.
         */
        post: operations["createMessage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhook-messages/{messageId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a message */
        get: operations["getMessage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhook-messages/{messageId}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the deliveries of a message, newest webhook first
         * @description A page ends after about 1 MB of attempts. It may therefore hold fewer entries than `limit`, although `nextCursor` is not null.
         */
        get: operations["listMessageDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/deliveries/{deliveryId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a delivery and its attempts */
        get: operations["getDelivery"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhook-messages/{messageId}/erase-payload": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Erase the payload of a message
         * @description Erases the payload and the stored responses of the endpoints, for good. Pending deliveries are cancelled. The message stays in the history with `payload: null`. A repeat changes nothing.
         */
        post: operations["erasePayload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/deliveries/{deliveryId}/erase-responses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Erase the responses of a delivery
         * @description Erases bodies and headers of the responses that the delivery has so far. Status codes, outcomes and durations stay. Later attempts store theirs again.
         */
        post: operations["eraseResponses"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhook-messages/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send up to 1,000 messages
         * @description Sends messages in one request of at most 1 MiB (1,048,576 bytes), each with a result of its own. A message that is not valid refuses the request, and nothing is stored. For the rate limit each message counts as a request.
         */
        post: operations["createMessages"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List deliveries of all webhooks, those of the newest message first
         * @description Without `delivered` among the statuses the list has the deliveries whose first attempt was made, or that have ended without one. One request examines a limited number of deliveries: with filters by webhook and reason, app, event type or `waiting` a page may hold fewer entries than `limit` although `nextCursor` is not null, and none where 25,000 in a row do not fit.
         */
        get: operations["listDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/deliveries/{deliveryId}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a pending delivery
         * @description No further attempt is begun. The answer to one that is under way still counts: a success makes the delivery `delivered`.
         */
        post: operations["cancelDelivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhookId}/cancel-pending": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel the pending deliveries to a webhook
         * @description Takes one write, however many deliveries there are. No attempt is begun five seconds later; the answers to those that are under way still count. Messages that are sent from then on are delivered.
         */
        post: operations["cancelPendingDeliveries"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/deliveries/cancel/estimate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count the pending deliveries that a filter selects
         * @description Returns how many deliveries `POST /deliveries/cancel` would cancel now.
         */
        get: operations["estimateCancellation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/deliveries/resend/estimate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count the failed deliveries that a filter selects
         * @description Returns how many deliveries `POST /deliveries/resend` would send again now: those to enabled webhooks.
         */
        get: operations["estimateResend"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/deliveries/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel all pending deliveries that a filter selects
         * @description Those that were created before the request, whatever their webhook and however many there are. No attempt of them is begun five seconds later; the answers to those that are under way still count. Each delivery shows it once it is stored, newest first. At least one field besides `status` is needed. `GET /api/v1/cancellations/{id}` shows the progress.
         */
        post: operations["cancelDeliveries"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/deliveries/resend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resend all failed deliveries that a filter selects
         * @description Resends the exhausted and cancelled deliveries to enabled webhooks in the background, several webhooks at a time, each oldest first. At least one field besides `status` is needed. One runs at a time for a webhook, an app, or, without these, the company. `GET /api/v1/resends/{id}` shows the progress.
         */
        post: operations["resendDeliveries"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cancellations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List cancellations by filter, newest first
         * @description A key of one app lists those of this app, or those of one webhook of it.
         */
        get: operations["listCancellations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cancellations/{cancellationId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a cancellation by filter */
        get: operations["getCancellation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/deliveries/{deliveryId}/resend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resend a delivery
         * @description Makes one attempt, which has the next number and is not retried. A success makes the delivery `delivered`; a failure leaves its status as it was.
         */
        post: operations["resendDelivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/resends": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List resends, newest first
         * @description A key of one app lists the resends of this app, or those of one webhook of it.
         */
        get: operations["listResends"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/resends/{resendId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the progress of a resend */
        get: operations["getResend"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/resends/{resendId}/abort": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Abort a resend
         * @description Nothing further is sent. What is under way is settled and counted for 20 seconds, then the resend is `aborted`; `succeeded` and `failed` count what was sent, and the rest of `total` was not. A resend that has ended stays as it is.
         */
        post: operations["abortResend"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/source-ips": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the addresses that deliveries come from
         * @description For the firewall in front of an endpoint. Needs no API key.
         */
        get: operations["getSourceIps"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the API keys, oldest first */
        get: operations["listApiKeys"];
        put?: never;
        /**
         * Create an API key
         * @description The response is the only place that shows the key: Posthorn stores its hash. A key cannot be given a scope that the key of the request does not have.
         */
        post: operations["createApiKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api-keys/{keyId}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate an API key
         * @description Creates a key with the same name and rights. The old key works beside it for `graceSeconds`, then it expires.
         */
        post: operations["rotateApiKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api-keys/{keyId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke an API key
         * @description The key stops working at once at this gateway, and within two seconds at others.
         */
        delete: operations["revokeApiKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the API key of the request, and its company
         * @description Every API key may use it, whatever its scopes.
         */
        get: operations["getMe"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/signing-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the signing keys, oldest first
         * @description The keys that sign the deliveries of webhooks with `signatureAlgorithm: ed25519`, at most two. The first one is made when the first such webhook is. Receivers get the public keys from `GET /.well-known/webhooks-keys/{companyId}`, without an API key.
         */
        get: operations["listSigningKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/signing-keys/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make a new signing key
         * @description During the grace period both keys are published, and `webhook-signature` holds a signature of each. Another rotation ends the grace period of the one before: rotate again only when receivers have read the new key.
         */
        post: operations["rotateSigningKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit-events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List audit events, newest first
         * @description Every change of API keys, projects, apps and webhooks, every resend and test message, every read that showed secrets, and what operators did for your company. A page ends after 1 MB of changes, so it may hold fewer entries than `limit`, although `nextCursor` is not null.
         */
        get: operations["listAuditEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get counts of attempts over time
         * @description Attempts that ended in each minute, hour or day (UTC), by outcome, with how long they took. Points without an attempt are left out. At most 1,440 minutes, 744 hours or 31 days at once. An attempt is counted within 20 seconds while few webhooks are in use, and later with thousands of them.
         */
        get: operations["getStats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get what happened lately at a glance
         * @description Counts of attempts come from `GET /api/v1/stats`: an attempt is counted within 20 seconds while few webhooks are in use, and later with thousands of them.
         */
        get: operations["getOverview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/failures": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the failed attempts by webhook and outcome, the most frequent first
         * @description Of the 100 webhooks that failed most. The counts come from `GET /api/v1/stats`, and the times of the first and last failure are those of their hours.
         */
        get: operations["listFailures"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/find": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Find out what an id is of */
        get: operations["findById"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/circuits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the open circuits, the oldest first
         * @description While the circuit of a webhook is open, its endpoint gets one attempt now and then, and the others are deferred. Returns at most 1,000. While Redis is away they are not known: 503.
         */
        get: operations["listCircuits"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/find-apps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Find apps of any project by name or id, oldest first
         * @description One request looks at 1,000 apps. A page may therefore hold fewer entries than `limit`, or none, although `nextCursor` is not null. Ids that do not exist are left out.
         */
        get: operations["findApps"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app-counts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count the webhooks of apps and their attempts of the last 24 hours
         * @description In no order. Ids that do not exist are left out.
         */
        get: operations["getAppCounts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/find-webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Find webhooks of any app by URL, name, event type or id, newest first
         * @description One request examines 1,000 webhooks. A page may therefore hold fewer entries than `limit`, or none, although `nextCursor` is not null. Ids that do not exist are left out.
         */
        get: operations["findWebhooks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/apps/{appId}/portal-links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make a link to the portal of an app
         * @description The link signs one visitor in to pages that show this app only. It opens once, and the visit ends when the link expires or is revoked, or when the API key that made it is revoked or expires. A link made in a session of the dashboard that a sign-in link began lasts as long as asked. A link cannot give what the API key may not do.
         */
        post: operations["createPortalLink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/portal-links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the links to portals, those that last longest first
         * @description Links that were revoked or have expired are left out. The URL of a link is shown only when it is made.
         */
        get: operations["listPortalLinks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/portal-links/{linkId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke a link to the portal
         * @description The link does not open any more, and its visit ends at once at this gateway, and within two seconds at others.
         */
        delete: operations["revokePortalLink"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/portal-settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the settings of the portal */
        get: operations["getPortalSettings"];
        /**
         * Change the settings of the portal
         * @description Other gateways know the new settings within five seconds.
         */
        put: operations["updatePortalSettings"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the people of the company, oldest first
         * @description Those who have signed in. The role is that of their last sign-in, or of the invitation.
         */
        get: operations["listPeople"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people/{personId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a person, and their sessions */
        get: operations["getPerson"];
        /**
         * Change the role of an invited person, or disable a person
         * @description Both end all sessions of the person, within two seconds at every gateway. Whoever is disabled signs in no more; the API keys that they made stay.
         */
        put: operations["updatePerson"];
        post?: never;
        /**
         * Remove a person
         * @description Ends all sessions, and forgets name and e-mail address. The audit log keeps the name, and says which API keys the person made; `GET /api-keys?createdBy=…` lists them. A group lets the person in again, as a new one: disable people who must stay out.
         */
        delete: operations["deletePerson"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people/{personId}/end-sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End the sessions of a person
         * @description At once at this gateway, and within two seconds at others.
         */
        post: operations["endPersonSessions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/people-settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the roles of groups */
        get: operations["getPeopleSettings"];
        /**
         * Change the roles of groups
         * @description Ends the sessions whose role changes by it, within two seconds at every gateway.
         */
        put: operations["updatePeopleSettings"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/invitations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the open invitations, the one that lasts longest first */
        get: operations["listInvitations"];
        put?: never;
        /**
         * Invite a person
         * @description Posthorn sends no e-mail: hand the URL over. Whoever signs in with it first has the role in the company, whatever groups they have.
         */
        post: operations["createInvitation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/invitations/{invitationId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke an invitation
         * @description The invitation does not open any more. Whoever has used it stays a person of the company.
         */
        delete: operations["revokeInvitation"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Failure: {
            /** @constant */
            success: false;
            /** @description For people. The text may change */
            message: string;
            /** @description For programs. Each cause has one fixed code */
            code: string;
            /** @description The same as in the header `X-Request-Id` */
            requestId: string;
            /** @description Every problem of the request, at most 100. Present with `invalid_request` only */
            errors?: components["schemas"]["Problem"][];
        };
        Problem: {
            /** @description Name of the field, query parameter or header. Names of nested fields are joined by dots */
            path: string;
            message: string;
        };
        CreateProject: {
            /** @example Orders */
            name: string;
            /**
             * @description Your own id. `uid:` and this text stand for the id wherever one is given
             * @example customer-17
             */
            uid?: string | null;
            environment?: ("development" | "production") | null;
            /**
             * @description Texts that you want to find at the object. An update replaces all of them
             * @example {
             *       "plan": "gold"
             *     }
             */
            metadata?: {
                [key: string]: string;
            } | null;
            description?: string | null;
            /** @description `known` refuses messages whose event type is not in the catalogue, `validated` also payloads that do not meet its schema. `open` when left out */
            eventTypePolicy?: ("open" | "known" | "validated") | null;
        };
        CreatedProject: {
            /**
             * @description Id with the prefix `proj_`
             * @example proj_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            name: string;
            uid: string | null;
            /**
             * @description The texts that were given; empty when none were
             * @example {
             *       "plan": "gold"
             *     }
             */
            metadata: {
                [key: string]: string;
            };
            /** @description Absent when none was given */
            description?: string;
            /** @enum {string} */
            eventTypePolicy: "open" | "known" | "validated";
            createdAt: components["schemas"]["Time"];
            updatedAt: components["schemas"]["Time"];
        };
        /**
         * Format: date-time
         * @description ISO 8601 in UTC with milliseconds
         * @example 2026-01-31T09:30:00.000Z
         */
        Time: string;
        CreatedProjectResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["CreatedProject"];
        };
        Project: {
            /**
             * @description Id with the prefix `proj_`
             * @example proj_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            name: string;
            uid: string | null;
            /**
             * @description The texts that were given; empty when none were
             * @example {
             *       "plan": "gold"
             *     }
             */
            metadata: {
                [key: string]: string;
            };
            /** @description Absent when none was given */
            description?: string;
            /** @enum {string} */
            eventTypePolicy: "open" | "known" | "validated";
            createdAt: components["schemas"]["Time"];
            updatedAt: components["schemas"]["Time"];
            /**
             * @description Id with the prefix `comp_`
             * @example comp_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            company: string;
            /** @enum {string} */
            environment: "development" | "production";
        };
        ProjectListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["Project"][];
        };
        ProjectResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["Project"];
        };
        UpdateProject: {
            /** @example Orders */
            name?: string;
            /**
             * @description Your own id. `uid:` and this text stand for the id wherever one is given
             * @example customer-17
             */
            uid?: string | null;
            /**
             * @description Texts that you want to find at the object. An update replaces all of them
             * @example {
             *       "plan": "gold"
             *     }
             */
            metadata?: {
                [key: string]: string;
            } | null;
            description?: string | null;
            /** @description `known` refuses messages whose event type is not in the catalogue, `validated` also payloads that do not meet its schema. `open` when left out */
            eventTypePolicy?: ("open" | "known" | "validated") | null;
        };
        EmptyResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
        };
        CreateApp: {
            /** @example Orders */
            name: string;
            /** @example proj_01kdyx3m9e7r8s5tqv2wzcbn4a */
            projectId: string;
            /**
             * @description Your own id. `uid:` and this text stand for the id wherever one is given
             * @example customer-17
             */
            uid?: string | null;
            environment?: ("development" | "production") | null;
            /**
             * @description Texts that you want to find at the object. An update replaces all of them
             * @example {
             *       "plan": "gold"
             *     }
             */
            metadata?: {
                [key: string]: string;
            } | null;
            description?: string | null;
            /** @description Whether attempts are stored with the response of the endpoint. True when left out */
            storeResponses?: boolean | null;
            /** @description `until-delivered` erases the payload of a message once every delivery is `delivered`. `retained` when left out */
            storePayloads?: components["schemas"]["StorePayloads"] | null;
        };
        /**
         * @description `until-delivered` erases the payload of a message once every delivery is `delivered`. `retained` when left out
         * @enum {string}
         */
        StorePayloads: "retained" | "until-delivered";
        App: {
            /**
             * @description Id with the prefix `app_`
             * @example app_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            name: string;
            uid: string | null;
            /** @enum {string} */
            environment: "development" | "production";
            /**
             * @description The texts that were given; empty when none were
             * @example {
             *       "plan": "gold"
             *     }
             */
            metadata: {
                [key: string]: string;
            };
            /** @description Empty when none was given */
            description: string;
            /** @description Absent until it is given */
            storeResponses?: boolean;
            /**
             * @description Absent until it is given
             * @enum {string}
             */
            storePayloads?: "retained" | "until-delivered";
            createdAt: components["schemas"]["Time"];
            updatedAt: components["schemas"]["Time"];
            /** @description Deliveries wait until it ends; null while there is none */
            held: components["schemas"]["Hold"] | null;
        };
        Hold: {
            since: components["schemas"]["Time"];
            /** @description When it ends by itself; null for never */
            until: components["schemas"]["Time"] | null;
            reason: string | null;
            /** @description Id of the API key, or of the portal link, that asked for it */
            by: string;
        };
        AppResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["App"];
        };
        AppListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["App"][];
        };
        UpdateApp: {
            /** @example Orders */
            name?: string;
            /**
             * @description Your own id. `uid:` and this text stand for the id wherever one is given
             * @example customer-17
             */
            uid?: string | null;
            /**
             * @description Texts that you want to find at the object. An update replaces all of them
             * @example {
             *       "plan": "gold"
             *     }
             */
            metadata?: {
                [key: string]: string;
            } | null;
            description?: string | null;
            /** @description Whether attempts are stored with the response of the endpoint. True when left out */
            storeResponses?: boolean | null;
            /** @description `until-delivered` erases the payload of a message once every delivery is `delivered`. `retained` when left out */
            storePayloads?: components["schemas"]["StorePayloads"] | null;
        };
        CreateEventType: {
            /** @example order.paid */
            name: string;
            /** @description For people, as plain text with its line breaks */
            description?: string | null;
            /**
             * @description Event types of a group are listed together; by default those with the same first part
             * @example Orders
             */
            group?: string | null;
            /**
             * @description JSON Schema 2020-12 of the payload, with the keywords of docs/event-types.md. At most 32768 bytes, 32 levels and 2,000 objects
             * @example {
             *       "type": "object",
             *       "required": [
             *         "amount"
             *       ],
             *       "properties": {
             *         "amount": {
             *           "type": "number"
             *         }
             *       }
             *     }
             */
            schema?: {
                [key: string]: unknown;
            } | null;
            /**
             * @description A payload, which meets `schema`. At most 32768 bytes
             * @example {
             *       "amount": 12.5
             *     }
             */
            example?: {
                [key: string]: unknown;
            } | null;
            /** @description It works, and is marked wherever people choose */
            deprecated?: boolean | null;
            /** @description It is shown to nobody who chooses, and `eventTypePolicy` refuses its messages */
            archived?: boolean | null;
        };
        EventType: {
            name: string;
            /** @description Empty when none was given */
            description: string;
            group: string | null;
            deprecated: boolean;
            archived: boolean;
            /** @description Set by Posthorn: 1, and one more with each other `schema` */
            schemaVersion: number;
            createdAt: components["schemas"]["Time"];
            updatedAt: components["schemas"]["Time"];
            schema: {
                [key: string]: unknown;
            } | null;
            example: {
                [key: string]: unknown;
            } | null;
        };
        EventTypeResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["EventType"];
        };
        ListedEventType: {
            name: string;
            /** @description Empty when none was given */
            description: string;
            group: string | null;
            deprecated: boolean;
            archived: boolean;
            /** @description Set by Posthorn: 1, and one more with each other `schema` */
            schemaVersion: number;
            createdAt: components["schemas"]["Time"];
            updatedAt: components["schemas"]["Time"];
        };
        ListedEventTypeListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["ListedEventType"][];
        };
        UpdateEventType: {
            /** @description For people, as plain text with its line breaks */
            description?: string | null;
            /**
             * @description Event types of a group are listed together; by default those with the same first part
             * @example Orders
             */
            group?: string | null;
            /**
             * @description JSON Schema 2020-12 of the payload, with the keywords of docs/event-types.md. At most 32768 bytes, 32 levels and 2,000 objects
             * @example {
             *       "type": "object",
             *       "required": [
             *         "amount"
             *       ],
             *       "properties": {
             *         "amount": {
             *           "type": "number"
             *         }
             *       }
             *     }
             */
            schema?: {
                [key: string]: unknown;
            } | null;
            /**
             * @description A payload, which meets `schema`. At most 32768 bytes
             * @example {
             *       "amount": 12.5
             *     }
             */
            example?: {
                [key: string]: unknown;
            } | null;
            /** @description It works, and is marked wherever people choose */
            deprecated?: boolean | null;
            /** @description It is shown to nobody who chooses, and `eventTypePolicy` refuses its messages */
            archived?: boolean | null;
        };
        ImportEventTypes: {
            /**
             * @description An OpenAPI document, 3.1 with `webhooks` or 3.0 with `x-webhooks`. References lead to places of the same document
             * @example {
             *       "openapi": "3.1.0",
             *       "webhooks": {
             *         "order.paid": {
             *           "post": {
             *             "tags": [
             *               "Orders"
             *             ],
             *             "description": "An order was paid.",
             *             "requestBody": {
             *               "content": {
             *                 "application/json": {
             *                   "example": {
             *                     "order": 17
             *                   }
             *                 }
             *               }
             *             }
             *           }
             *         }
             *       }
             *     }
             */
            document: {
                [key: string]: unknown;
            };
            /** @description With `true`, nothing is changed */
            dryRun?: boolean | null;
            /** @description With `true`, event types that the document does not have are archived */
            archiveMissing?: boolean | null;
        };
        ImportedEventTypes: {
            created: number;
            updated: number;
            archived: number;
            unchanged: number;
            /** @description By name, without what is unchanged */
            changes: {
                name: string;
                /** @enum {string} */
                change: "created" | "updated" | "archived";
            }[];
        };
        ImportedEventTypesResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["ImportedEventTypes"];
        };
        OpenApiDocument: {
            [key: string]: unknown;
        };
        OpenApiDocumentResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["OpenApiDocument"];
        };
        CreateWebhook: {
            /**
             * @description An https URL, or http too where the operator sets `EGRESS_ALLOW_HTTP`, of a public host, without user, password and fragment. Stored percent-encoded, as it is sent
             * @example https://example.com/webhooks
             */
            url: string;
            /** @example proj_01kdyx3m9e7r8s5tqv2wzcbn4a */
            projectId?: string | null;
            /** @example app_01kdyx3m9e7r8s5tqv2wzcbn4a */
            appId?: string | null;
            /** @example live */
            environmentId?: string | null;
            /** @example Orders */
            name?: string | null;
            /**
             * @description Verifies deliveries, such as that of an endpoint which another service has delivered to: `whsec_` and the base64 of 24 to 64 bytes. 32 random ones unless given
             * @example whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=
             */
            secret?: string | null;
            /**
             * @description The headers with id, timestamp and signature: `webhook-*`, and with `svix` also `svix-*` with the same values, for receivers that use a library of Svix
             * @example [
             *       "webhook"
             *     ]
             */
            signatureHeaders?: ("webhook" | "svix")[] | null;
            /** @description Names are unique regardless of case, and differ from the header that `authMethod` sets */
            customHeaders?: components["schemas"]["CustomHeader"][] | null;
            tls?: components["schemas"]["EndpointTls"] | null;
            /** @description Event types to deliver: names, or beginnings such as `order.*`. An empty list selects all messages of the app */
            eventTypes?: string[] | null;
            /**
             * @description Conditions on `payload`, `eventType` and `tags` (docs/filters.md): only messages to its app that meet them go to the webhook. At most 4096 bytes, 50 conditions and 10 levels
             * @example {
             *       "payload": {
             *         "amount": {
             *           "$gte": 100
             *         }
             *       }
             *     }
             */
            filter?: {
                payload?: unknown;
                eventType?: unknown;
                tags?: unknown;
                $and?: Record<string, never>[];
                $or?: Record<string, never>[];
                $not?: Record<string, never>;
            } | null;
            disabled?: boolean | null;
            /** @description Most attempts per second; null for no limit */
            rateLimitPerSecond?: number | null;
            /**
             * @description Time for one attempt, from the look-up of the host to the end of the response; null for that of the service
             * @example 10
             */
            timeoutSeconds?: number | null;
            /**
             * @description Attempts of a delivery, the first ones of the schedule; null for all of the schedule
             * @example 3
             */
            maxAttempts?: number | null;
            /**
             * @description Statuses after which a delivery is not tried again; null for none. 408, 425, 429 and 503 cannot be among them
             * @example [
             *       400,
             *       422
             *     ]
             */
            finalStatusCodes?: number[] | null;
            /** @description After status 410: `retry` as after any failure, or `disable` the webhook and end the delivery */
            onGone?: ("retry" | "disable") | null;
            /** @description Whether the endpoint may control its deliveries by the response header `webhook-delivery`: `disable` disables the webhook, `abort-message` ends a failed delivery */
            obeyControlHeaders?: boolean | null;
            /** @description Whether a delivery waits until the earlier ones with its `orderingKey` have ended: `none` for no order, `block` waits for an exhausted delivery until it is skipped or sent again, `skip` goes on behind it */
            ordering?: ("none" | "block" | "skip") | null;
            /**
             * @description Your own id. `uid:` and this text stand for the id wherever one is given
             * @example customer-17
             */
            uid?: string | null;
            /**
             * @description Texts that you want to find at the object. An update replaces all of them
             * @example {
             *       "plan": "gold"
             *     }
             */
            metadata?: {
                [key: string]: string;
            } | null;
            authMethod?: components["schemas"]["AuthMethodName"] | null;
            /**
             * @description Name of an HTTP header that neither Posthorn nor the connection sets
             * @example X-Tenant
             */
            hmacHeader?: components["schemas"]["HeaderName"] | null;
            /** @description Key of the signature. Use 32 random bytes, at least 16, as text. Without it the `secret` of the webhook is the key, which has 32. */
            hmacSecret?: string | null;
            /** @description For `hmac`: what signs the deliveries. `ed25519` signs with the key of your company, and receivers verify with its public key */
            signatureAlgorithm?: components["schemas"]["SignatureAlgorithm"] | null;
            basicAuthUsername?: string | null;
            basicAuthPassword?: string | null;
            apiKey?: string | null;
            /**
             * @description Name of an HTTP header that neither Posthorn nor the connection sets
             * @example X-Tenant
             */
            apiKeyHeader?: components["schemas"]["HeaderName"] | null;
            /**
             * @description For `oauth2`: where access tokens are requested, with the client credentials grant. The rules are those of `url`
             * @example https://login.example.com/oauth2/token
             */
            oauth2TokenUrl?: string | null;
            oauth2ClientId?: string | null;
            oauth2ClientSecret?: string | null;
            oauth2Scope?: string | null;
            /** @description Sent as `audience`, which some token servers ask for; null for none */
            oauth2Audience?: string | null;
            /** @description Whether id and secret are sent to the token server in `Authorization` (`basic`, the default) or in the body (`post`) */
            oauth2ClientAuthentication?: components["schemas"]["ClientAuthentication"] | null;
        } & (unknown & unknown & unknown & unknown & unknown & unknown & unknown & unknown);
        CustomHeader: {
            key: components["schemas"]["HeaderName"];
            value: string;
        };
        /**
         * @description Name of an HTTP header that neither Posthorn nor the connection sets
         * @example X-Tenant
         */
        HeaderName: string;
        /** @description TLS to the endpoint, in PEM; at most 5 certificates in each */
        EndpointTls: {
            /** @description What proves the deliveries to the endpoint, then the authorities between */
            certificate?: string;
            /** @description Private key of the first certificate, not encrypted. RSA of 2,048 to 4,096 bits, or better P-256. No response shows it */
            key?: string;
            /** @description The only authorities that may have issued the certificate of the endpoint. Without it, the public ones */
            ca?: string;
        };
        /** @enum {string} */
        AuthMethodName: "hmac" | "basic" | "apiKey" | "oauth2";
        /**
         * @description For `hmac`: what signs the deliveries. `ed25519` signs with the key of your company, and receivers verify with its public key
         * @enum {string}
         */
        SignatureAlgorithm: "hmac-sha256" | "ed25519";
        /**
         * @description Whether id and secret are sent to the token server in `Authorization` (`basic`, the default) or in the body (`post`)
         * @enum {string}
         */
        ClientAuthentication: "basic" | "post";
        WebhookWithAuth: {
            /**
             * @description Id with the prefix `wh_`
             * @example wh_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /** @description The app whose messages it gets; null for a global webhook */
            appId: string | null;
            name: string;
            url: string;
            /** @description Verifies deliveries: `whsec_` and the base64 of 24 to 64 bytes; 32 random ones unless it was given */
            secret: string;
            /**
             * @description The headers with id, timestamp and signature: `webhook-*`, and with `svix` also `svix-*` with the same values, for receivers that use a library of Svix
             * @example [
             *       "webhook"
             *     ]
             */
            signatureHeaders: ("webhook" | "svix")[];
            customHeaders: components["schemas"]["Header"][];
            authMethod: components["schemas"]["AuthMethod"];
            tls?: components["schemas"]["ShownTls"];
            /** @description Event types to deliver: names, or beginnings such as `order.*`. An empty list selects all messages of the app */
            eventTypes: string[];
            filter: {
                [key: string]: unknown;
            } | null;
            disabled: boolean;
            /** @description Why Posthorn disabled the webhook: its endpoint answered 410 (`gone`) or asked for it with a response header (`control_header`), or all attempts failed for long (`failing`). Null unless Posthorn did */
            disabledReason: ("gone" | "control_header" | "failing") | null;
            /** @description Most attempts per second; null for no limit */
            rateLimitPerSecond: number | null;
            /**
             * @description Time for one attempt, from the look-up of the host to the end of the response; null for that of the service
             * @example 10
             */
            timeoutSeconds: number | null;
            /** @description Deliveries wait until it ends; null while there is none */
            held: components["schemas"]["Hold"] | null;
            /**
             * @description Attempts of a delivery, the first ones of the schedule; null for all of the schedule
             * @example 3
             */
            maxAttempts: number | null;
            /**
             * @description Statuses after which a delivery is not tried again; null for none. 408, 425, 429 and 503 cannot be among them
             * @example [
             *       400,
             *       422
             *     ]
             */
            finalStatusCodes: number[] | null;
            /**
             * @description After status 410: `retry` as after any failure, or `disable` the webhook and end the delivery
             * @enum {string}
             */
            onGone: "retry" | "disable";
            /** @description Whether the endpoint may control its deliveries by the response header `webhook-delivery`: `disable` disables the webhook, `abort-message` ends a failed delivery */
            obeyControlHeaders: boolean;
            /**
             * @description Whether a delivery waits until the earlier ones with its `orderingKey` have ended: `none` for no order, `block` waits for an exhausted delivery until it is skipped or sent again, `skip` goes on behind it
             * @enum {string}
             */
            ordering: "none" | "block" | "skip";
            uid: string | null;
            /**
             * @description The texts that were given; empty when none were
             * @example {
             *       "plan": "gold"
             *     }
             */
            metadata: {
                [key: string]: string;
            };
            /** @description Headers that Posthorn adds */
            headers: components["schemas"]["Header"][];
            createdAt: components["schemas"]["Time"];
            updatedAt: components["schemas"]["Time"];
            /** @description Deliveries that wait because the webhook or its app is on hold, or are still to be released; counted up to 100,000 */
            waiting: number;
            /** @description Ordering keys that are blocked by an exhausted delivery; counted up to 1,000 */
            blockedKeys: number;
        };
        Header: {
            key: string;
            value: string;
        };
        /** @description How deliveries authenticate to the endpoint */
        AuthMethod: components["schemas"]["HmacAuth"] | components["schemas"]["ApiKeyAuth"] | components["schemas"]["BasicAuth"] | components["schemas"]["Oauth2Auth"];
        HmacAuth: {
            /** @constant */
            method: "hmac";
            hmacHeader: string;
            hmacSecret: string;
            /**
             * @description Present when the key of the company signs. `hmacHeader` and `hmacSecret` are not used then
             * @constant
             */
            signatureAlgorithm?: "ed25519";
        };
        ApiKeyAuth: {
            /** @constant */
            method: "api_key";
            apiKey: string;
            apiKeyHeader: string;
        };
        BasicAuth: {
            /** @constant */
            method: "basic";
            username: string;
            password: string;
        };
        Oauth2Auth: {
            /** @constant */
            method: "oauth2";
            tokenUrl: string;
            clientId: string;
            clientSecret: string;
            scope: string | null;
            audience: string | null;
            /** @enum {string} */
            clientAuthentication: "basic" | "post";
        };
        /** @description Present when the webhook has TLS settings of its own */
        ShownTls: {
            certificate: components["schemas"]["ShownCertificate"][];
            ca: components["schemas"]["ShownCertificate"][];
        };
        ShownCertificate: {
            /** @example CN=posthorn, O=Example */
            subject: string;
            issuer: string;
            /** @description SHA-256 of the certificate */
            fingerprint256: string;
            notBefore: components["schemas"]["Time"];
            notAfter: components["schemas"]["Time"];
        };
        WebhookWithAuthResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["WebhookWithAuth"];
        };
        Webhook: {
            /**
             * @description Id with the prefix `wh_`
             * @example wh_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /** @description The app whose messages it gets; null for a global webhook */
            appId: string | null;
            name: string;
            url: string;
            /** @description Verifies deliveries: `whsec_` and the base64 of 24 to 64 bytes; 32 random ones unless it was given */
            secret: string;
            /**
             * @description The headers with id, timestamp and signature: `webhook-*`, and with `svix` also `svix-*` with the same values, for receivers that use a library of Svix
             * @example [
             *       "webhook"
             *     ]
             */
            signatureHeaders: ("webhook" | "svix")[];
            customHeaders: components["schemas"]["Header"][];
            /** @description Event types to deliver: names, or beginnings such as `order.*`. An empty list selects all messages of the app */
            eventTypes: string[];
            filter: {
                [key: string]: unknown;
            } | null;
            disabled: boolean;
            /** @description Why Posthorn disabled the webhook: its endpoint answered 410 (`gone`) or asked for it with a response header (`control_header`), or all attempts failed for long (`failing`). Null unless Posthorn did */
            disabledReason: ("gone" | "control_header" | "failing") | null;
            /** @description Most attempts per second; null for no limit */
            rateLimitPerSecond: number | null;
            /**
             * @description Time for one attempt, from the look-up of the host to the end of the response; null for that of the service
             * @example 10
             */
            timeoutSeconds: number | null;
            /** @description Deliveries wait until it ends; null while there is none */
            held: components["schemas"]["Hold"] | null;
            /**
             * @description Attempts of a delivery, the first ones of the schedule; null for all of the schedule
             * @example 3
             */
            maxAttempts: number | null;
            /**
             * @description Statuses after which a delivery is not tried again; null for none. 408, 425, 429 and 503 cannot be among them
             * @example [
             *       400,
             *       422
             *     ]
             */
            finalStatusCodes: number[] | null;
            /**
             * @description After status 410: `retry` as after any failure, or `disable` the webhook and end the delivery
             * @enum {string}
             */
            onGone: "retry" | "disable";
            /** @description Whether the endpoint may control its deliveries by the response header `webhook-delivery`: `disable` disables the webhook, `abort-message` ends a failed delivery */
            obeyControlHeaders: boolean;
            /**
             * @description Whether a delivery waits until the earlier ones with its `orderingKey` have ended: `none` for no order, `block` waits for an exhausted delivery until it is skipped or sent again, `skip` goes on behind it
             * @enum {string}
             */
            ordering: "none" | "block" | "skip";
            uid: string | null;
            /**
             * @description The texts that were given; empty when none were
             * @example {
             *       "plan": "gold"
             *     }
             */
            metadata: {
                [key: string]: string;
            };
            /** @description Headers that Posthorn adds */
            headers: components["schemas"]["Header"][];
            createdAt: components["schemas"]["Time"];
            updatedAt: components["schemas"]["Time"];
        };
        WebhookListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["Webhook"][];
        };
        UpdateWebhook: {
            /** @example Orders */
            name?: string;
            /**
             * @description An https URL, or http too where the operator sets `EGRESS_ALLOW_HTTP`, of a public host, without user, password and fragment. Stored percent-encoded, as it is sent
             * @example https://example.com/webhooks
             */
            url?: string;
            /**
             * @description The headers with id, timestamp and signature: `webhook-*`, and with `svix` also `svix-*` with the same values, for receivers that use a library of Svix
             * @example [
             *       "webhook"
             *     ]
             */
            signatureHeaders?: ("webhook" | "svix")[] | null;
            /** @description Names are unique regardless of case, and differ from the header that `authMethod` sets */
            customHeaders?: components["schemas"]["CustomHeader"][] | null;
            tls?: components["schemas"]["EndpointTls"] | null;
            /** @description Event types to deliver: names, or beginnings such as `order.*`. An empty list selects all messages of the app */
            eventTypes?: string[] | null;
            /**
             * @description Conditions on `payload`, `eventType` and `tags` (docs/filters.md): only messages to its app that meet them go to the webhook. At most 4096 bytes, 50 conditions and 10 levels
             * @example {
             *       "payload": {
             *         "amount": {
             *           "$gte": 100
             *         }
             *       }
             *     }
             */
            filter?: {
                payload?: unknown;
                eventType?: unknown;
                tags?: unknown;
                $and?: Record<string, never>[];
                $or?: Record<string, never>[];
                $not?: Record<string, never>;
            } | null;
            disabled?: boolean | null;
            /** @description Most attempts per second; null for no limit */
            rateLimitPerSecond?: number | null;
            /**
             * @description Time for one attempt, from the look-up of the host to the end of the response; null for that of the service
             * @example 10
             */
            timeoutSeconds?: number | null;
            /**
             * @description Attempts of a delivery, the first ones of the schedule; null for all of the schedule
             * @example 3
             */
            maxAttempts?: number | null;
            /**
             * @description Statuses after which a delivery is not tried again; null for none. 408, 425, 429 and 503 cannot be among them
             * @example [
             *       400,
             *       422
             *     ]
             */
            finalStatusCodes?: number[] | null;
            /** @description After status 410: `retry` as after any failure, or `disable` the webhook and end the delivery */
            onGone?: ("retry" | "disable") | null;
            /** @description Whether the endpoint may control its deliveries by the response header `webhook-delivery`: `disable` disables the webhook, `abort-message` ends a failed delivery */
            obeyControlHeaders?: boolean | null;
            /** @description Whether a delivery waits until the earlier ones with its `orderingKey` have ended: `none` for no order, `block` waits for an exhausted delivery until it is skipped or sent again, `skip` goes on behind it */
            ordering?: ("none" | "block" | "skip") | null;
            /**
             * @description Your own id. `uid:` and this text stand for the id wherever one is given
             * @example customer-17
             */
            uid?: string | null;
            /**
             * @description Texts that you want to find at the object. An update replaces all of them
             * @example {
             *       "plan": "gold"
             *     }
             */
            metadata?: {
                [key: string]: string;
            } | null;
            authMethod?: components["schemas"]["AuthMethodName"] | null;
            /**
             * @description Name of an HTTP header that neither Posthorn nor the connection sets
             * @example X-Tenant
             */
            hmacHeader?: components["schemas"]["HeaderName"] | null;
            /** @description Key of the signature. Use 32 random bytes, at least 16, as text. Without it the `secret` of the webhook is the key, which has 32. */
            hmacSecret?: string | null;
            /** @description For `hmac`: what signs the deliveries. `ed25519` signs with the key of your company, and receivers verify with its public key */
            signatureAlgorithm?: components["schemas"]["SignatureAlgorithm"] | null;
            basicAuthUsername?: string | null;
            basicAuthPassword?: string | null;
            apiKey?: string | null;
            /**
             * @description Name of an HTTP header that neither Posthorn nor the connection sets
             * @example X-Tenant
             */
            apiKeyHeader?: components["schemas"]["HeaderName"] | null;
            /**
             * @description For `oauth2`: where access tokens are requested, with the client credentials grant. The rules are those of `url`
             * @example https://login.example.com/oauth2/token
             */
            oauth2TokenUrl?: string | null;
            oauth2ClientId?: string | null;
            oauth2ClientSecret?: string | null;
            oauth2Scope?: string | null;
            /** @description Sent as `audience`, which some token servers ask for; null for none */
            oauth2Audience?: string | null;
            /** @description Whether id and secret are sent to the token server in `Authorization` (`basic`, the default) or in the body (`post`) */
            oauth2ClientAuthentication?: components["schemas"]["ClientAuthentication"] | null;
        } & (unknown & unknown & unknown & unknown & unknown & unknown);
        WebhookResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["Webhook"];
        };
        RotateSecret: {
            /** @description How long the old secret signs beside the new one, in seconds */
            graceSeconds?: number | null;
            /**
             * @description The new secret: `whsec_` and the base64 of 24 to 64 bytes. 32 random ones unless given
             * @example whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=
             */
            secret?: string | null;
        };
        TestWebhook: {
            /**
             * @description The message has this event type of the catalogue, and its `example` as payload
             * @example order.paid
             */
            eventType?: string | null;
        };
        Delivery: {
            /**
             * @description Id with the prefix `dlv_`
             * @example dlv_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /**
             * @description Id with the prefix `msg_`
             * @example msg_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            messageId: string;
            /**
             * @description Id with the prefix `wh_`
             * @example wh_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            webhookId: string;
            status: components["schemas"]["DeliveryStatus"];
            /** @description Why the delivery was cancelled, or exhausted before all attempts were made; null otherwise */
            reason: ("webhook_deleted" | "webhook_disabled" | "message_missing" | "cancelled_by_client" | "payload_erased" | "expired_while_waiting" | "expired" | "gone" | "not_retryable" | "aborted") | null;
            attemptCount: number;
            nextAttemptAt: components["schemas"]["Time"] | null;
            /** @description Why it waits without a planned attempt. `hold`: its webhook or app is on hold, or was and it is to be released; null while it does not wait */
            waiting: ("hold" | "order" | "time") | null;
            waitingSince: components["schemas"]["Time"] | null;
            attempts: components["schemas"]["MadeAttempt"][];
            createdAt: components["schemas"]["Time"];
            updatedAt: components["schemas"]["Time"];
        };
        /** @enum {string} */
        DeliveryStatus: "pending" | "delivered" | "exhausted" | "cancelled";
        MadeAttempt: {
            /**
             * @description Id with the prefix `att_`
             * @example att_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /** @description False until the attempt is made */
            processed: boolean;
            resend: boolean;
            /** @description Status of the endpoint; null when none arrived in time */
            statusCode: number | null;
            /** @description The first 4 KiB of the response body */
            response: string | null;
            /** @description Headers that are sent, with credentials masked. Empty when the webhook was changed or deleted since */
            headers: components["schemas"]["Header"][];
            createdAt: components["schemas"]["Time"];
            updatedAt: components["schemas"]["Time"];
            number: number;
            /** @enum {string} */
            outcome: "success" | "http_3xx" | "http_4xx" | "http_429" | "http_5xx" | "timeout" | "dns_error" | "connect_error" | "tls_error" | "egress_blocked" | "response_too_large" | "aborted" | "token_failed";
            /** @description Why there was no access token, with `token_failed`; else null */
            failureReason: string | null;
            durationMs: number;
            responseHeaders: components["schemas"]["Header"][];
        };
        DeliveryResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["Delivery"];
        };
        WebhookHealth: {
            /**
             * @description `open`: attempts kept failing, and further ones are deferred. `half_open`: one attempt finds out whether the endpoint has recovered
             * @enum {string}
             */
            circuit: "closed" | "open" | "half_open";
            /** @description When the next attempt finds out whether the endpoint has recovered; null while the circuit is closed */
            probeAt: components["schemas"]["Time"] | null;
            /** @description When the newest of the examined attempts began; null without attempts */
            lastAttemptAt: components["schemas"]["Time"] | null;
            /** @description Share of the examined attempts that succeeded; null without attempts */
            successRate: number | null;
            latencyMs: components["schemas"]["HealthLatency"];
            concurrency: components["schemas"]["HealthConcurrency"];
            /** @description Most attempts per second: the limit of the webhook, or the rate learned from its 429 responses. Null when there is no limit, and when nothing was sent in the last minutes */
            ratePerSecond: number | null;
            /** @description Nothing is sent before this time: the endpoint asked for a pause with `Retry-After`. Null without a pause */
            pausedUntil: components["schemas"]["Time"] | null;
            /** @description Deliveries wait until it ends; null while there is none */
            held: components["schemas"]["Hold"] | null;
            /** @description Number of pending deliveries; counted up to 10,000 */
            backlog: number;
        };
        /** @description Duration of the examined attempts; null without attempts */
        HealthLatency: {
            p50: number | null;
            p95: number | null;
        };
        /** @description Attempts that may run at once. The limit grows while attempts wait and the endpoint responds well; it shrinks on 429, 503, timeouts and rising latency */
        HealthConcurrency: {
            now: number;
            floor: number;
            ceiling: number;
        };
        WebhookHealthResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["WebhookHealth"];
        };
        BeginHold: {
            /**
             * @description When the hold ends by itself: in the future, and a day before deliveries expire at the latest. Null for never, which a new hold has when it is left out; a repeat without it keeps the end
             * @example 2026-01-31T09:30:00.000Z
             */
            until?: string | null;
            /**
             * @description For people. A repeat replaces it
             * @example maintenance of the endpoint
             */
            reason?: string | null;
        };
        EndHold: {
            /** @description Most waiting deliveries of one webhook that are released in a second */
            ratePerSecond?: number | null;
        };
        OrderingKey: {
            orderingKey: string;
            /**
             * @description `blocked`: the head is exhausted, and those behind it wait until it is skipped or sent again with success. `waiting`: the head is pending
             * @enum {string}
             */
            state: "blocked" | "waiting";
            /**
             * @description Its oldest delivery that has not ended
             * @example dlv_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            headDeliveryId: string;
            /**
             * @description Id with the prefix `msg_`
             * @example msg_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            headMessageId: string;
            /** @enum {string} */
            headStatus: "pending" | "exhausted";
            /** @description Of the head */
            nextAttemptAt: components["schemas"]["Time"] | null;
            /** @description Deliveries behind the head, counted up to 1,000 */
            waiting: number;
            /**
             * @description Since when deliveries of the key wait
             * @example 2026-01-31T09:30:00.000Z
             */
            since: components["schemas"]["Time"];
        };
        OrderingKeyListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["OrderingKey"][];
            /** @description The `cursor` of the next page; null on the last page */
            nextCursor: string | null;
        };
        SkipOrderingKey: {
            /** @example order-17 */
            orderingKey: string;
            /**
             * @description The exhausted delivery at which the key is blocked: `headDeliveryId`
             * @example dlv_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            deliveryId: string;
        };
        SkippedOrderingKey: {
            orderingKey: string;
            /**
             * @description That of the key in the list; `free` when it is not listed any more, and the fields behind it are null
             * @enum {string}
             */
            state: "blocked" | "waiting" | "free";
            headDeliveryId: string | null;
            headMessageId: string | null;
            headStatus: ("pending" | "exhausted") | null;
            /** @description Of the head */
            nextAttemptAt: components["schemas"]["Time"] | null;
            waiting: number | null;
            since: components["schemas"]["Time"] | null;
        };
        SkippedOrderingKeyResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["SkippedOrderingKey"];
        };
        ResendFailedOfWebhook: {
            /**
             * Format: date-time
             * @example 2026-01-31T09:30:00.000Z
             */
            since: string;
            /**
             * @description Not before `since`. Defaults to the time of the request
             * @example 2026-01-31T09:30:00.000Z
             */
            until?: string | null;
            /** @description Only deliveries whose last attempt ended with it. Without it, all that failed */
            outcome?: ("http_3xx" | "http_4xx" | "http_429" | "http_5xx" | "timeout" | "dns_error" | "connect_error" | "tls_error" | "egress_blocked" | "response_too_large" | "aborted" | "token_failed") | null;
        };
        Resend: {
            /**
             * @description Id with the prefix `rsnd_`
             * @example rsnd_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /**
             * @description `replay`: sends messages to a webhook that was not among their targets
             * @enum {string}
             */
            kind: "resend" | "replay";
            /** @description The app whose failed deliveries are resent; null for a resend of one webhook or delivery, and of the whole company */
            appId: string | null;
            /** @description The webhook whose deliveries are resent; null for a resend of an app or the company */
            webhookId: string | null;
            /** @description Only deliveries whose last attempt ended with it are resent; null for all that failed */
            outcome: ("success" | "http_3xx" | "http_4xx" | "http_429" | "http_5xx" | "timeout" | "dns_error" | "connect_error" | "tls_error" | "egress_blocked" | "response_too_large" | "aborted" | "token_failed") | null;
            /** @description What selects the failed deliveries of a resend by filter, beside its webhook and its time; null for other resends */
            filter: {
                /** @example exhausted,cancelled */
                status: string | null;
                reason: ("webhook_deleted" | "webhook_disabled" | "message_missing" | "cancelled_by_client" | "payload_erased" | "expired_while_waiting" | "expired" | "gone" | "not_retryable" | "aborted" | "all_attempts") | null;
                appId: string | null;
                eventType: string | null;
            } | null;
            /** @enum {string} */
            status: "running" | "done" | "aborted";
            /** @description When a client asked to abort it; null when nobody has */
            abortAskedAt: components["schemas"]["Time"] | null;
            /** @description Number of deliveries to send again, counted up to 100,000 until it is `done`. With an `outcome`, all that failed while it is `running` */
            total: number;
            /** @description 0 in a replay, whose deliveries are retried */
            succeeded: number;
            /** @description 0 in a replay */
            failed: number;
            /** @description Deliveries that were sent; in a replay the messages that the webhook gets */
            done: number;
            /** @description Messages of a replay that cannot be sent, because their payload was erased */
            skipped: number;
            /** @description Of a replay: only messages of these types; empty for all */
            eventTypes: string[];
            createdAt: components["schemas"]["Time"];
            updatedAt: components["schemas"]["Time"];
        };
        ResendResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["Resend"];
        };
        ResendFailed: {
            /**
             * Format: date-time
             * @example 2026-01-31T09:30:00.000Z
             */
            since: string;
            /**
             * @description Not before `since`. Defaults to the time of the request
             * @example 2026-01-31T09:30:00.000Z
             */
            until?: string | null;
        };
        ResendEstimate: {
            /** @description Number of deliveries to send again; counted up to 100,000 */
            total: number;
        };
        ResendEstimateResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["ResendEstimate"];
        };
        ReplayMissing: {
            /**
             * Format: date-time
             * @example 2026-01-31T09:30:00.000Z
             */
            since: string;
            /**
             * @description Not before `since`. Defaults to the time of the request
             * @example 2026-01-31T09:30:00.000Z
             */
            until?: string | null;
            /** @description Only messages of these types; `order.*` for all that begin with `order.`. Without it, all that the webhook receives */
            eventTypes?: string[] | null;
        };
        ReplayEstimate: {
            /** @description Messages that a replay would send now, among the first 100,000 of the time */
            total: number;
        };
        ReplayEstimateResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["ReplayEstimate"];
        };
        TestFilter: {
            /**
             * @description Conditions on `payload`, `eventType` and `tags` (docs/filters.md): only messages to its app that meet them go to the webhook. At most 4096 bytes, 50 conditions and 10 levels
             * @example {
             *       "payload": {
             *         "amount": {
             *           "$gte": 100
             *         }
             *       }
             *     }
             */
            filter: {
                payload?: unknown;
                eventType?: unknown;
                tags?: unknown;
                $and?: Record<string, never>[];
                $or?: Record<string, never>[];
                $not?: Record<string, never>;
            };
            /**
             * @description The payload of the message
             * @example {
             *       "order": 17,
             *       "total": "12.50"
             *     }
             */
            payload: {
                [key: string]: unknown;
            };
            /** @example order.paid */
            eventType?: string | null;
            tags?: string[] | null;
        };
        TestedFilter: {
            /** @description Whether the message would pass the filter */
            matches: boolean;
            /**
             * @description The first condition that the message does not meet; null when it passes
             * @example payload.amount.$gte
             */
            failedAt: string | null;
            /** @description The filter costs too much for this message, which therefore passes */
            undecided: boolean;
        };
        TestedFilterResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["TestedFilter"];
        };
        CreateMessage: {
            /** @example app_01kdyx3m9e7r8s5tqv2wzcbn4a */
            appId?: string | null;
            /** @example wh_01kdyx3m9e7r8s5tqv2wzcbn4a */
            webhookId?: string | null;
            /** @example order.paid */
            eventType?: string | null;
            /** @description Texts by which you find the message in the list of messages */
            tags?: string[] | null;
            /**
             * @description Your own id of the message. Several messages may have the same
             * @example evt-2026-000017
             */
            externalId?: string | null;
            /**
             * @description Deliveries of messages with the same key to a webhook with `ordering` follow each other. Not together with `deliverAt`
             * @example order-17
             */
            orderingKey?: string | null;
            /**
             * @description No attempt begins before it: a second to 30 days in the future, and earlier than `expiresAt`
             * @example 2026-01-31T09:30:00.000Z
             */
            deliverAt?: string | null;
            /**
             * @description No attempt begins from then on: deliveries that are pending are cancelled. In the future
             * @example 2026-01-31T09:30:00.000Z
             */
            expiresAt?: string | null;
            /**
             * @description The message, its deliveries and their attempts are removed so many days after its creation. Not more than the installation keeps others
             * @example 7
             */
            retentionDays?: number | null;
            /**
             * @description Delivered byte for byte as it is written here
             * @example {
             *       "order": 17,
             *       "total": "12.50"
             *     }
             */
            payload: {
                [key: string]: unknown;
            };
        };
        CreatedMessage: {
            /**
             * @description Id with the prefix `msg_`
             * @example msg_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /** @description True once every delivery is `delivered` */
            delivered: boolean;
            /** @description Text of the payload, byte for byte as the client sent it */
            payload: string;
            /** @description Hex HMAC SHA-256 of the payload, as the oldest webhook gets it; null without a webhook */
            signature: string | null;
            headers: components["schemas"]["Header"][];
            tags: string[];
            externalId: string | null;
            orderingKey: string | null;
            deliverAt: components["schemas"]["Time"] | null;
            expiresAt: components["schemas"]["Time"] | null;
            /** @description As the client sent it; null for as long as messages of the installation are kept */
            retentionDays: number | null;
            /** @description Why the message goes to no webhook: its app has none, none that selects its event type, or none whose filter it passes. Null when it goes to some */
            noTargetReason: ("no_webhook" | "event_type" | "filter") | null;
            createdAt: components["schemas"]["Time"];
            updatedAt: components["schemas"]["Time"];
            /** @description Last attempt of the oldest webhook, or the first one before it is made; null without a webhook */
            deliveryAttempt: components["schemas"]["Attempt"] | null;
            /** @description One for each webhook, oldest webhook first */
            deliveries: components["schemas"]["DeliverySummary"][];
        };
        Attempt: {
            /**
             * @description Id with the prefix `att_`
             * @example att_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /** @description False until the attempt is made */
            processed: boolean;
            resend: boolean;
            /** @description Status of the endpoint; null when none arrived in time */
            statusCode: number | null;
            /** @description The first 4 KiB of the response body */
            response: string | null;
            /** @description Headers that are sent, with credentials masked. Empty when the webhook was changed or deleted since */
            headers: components["schemas"]["Header"][];
            createdAt: components["schemas"]["Time"];
            updatedAt: components["schemas"]["Time"];
        };
        DeliverySummary: {
            /**
             * @description Id with the prefix `dlv_`
             * @example dlv_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /**
             * @description Id with the prefix `wh_`
             * @example wh_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            webhookId: string;
            status: components["schemas"]["DeliveryStatus"];
            attemptCount: number;
        };
        CreatedMessageResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["CreatedMessage"];
        };
        /**
         * @description That of its least finished delivery; `no_target` when it went to no webhook
         * @enum {string}
         */
        MessageStatus: "pending" | "delivered" | "exhausted" | "cancelled" | "no_target";
        ListedMessage: {
            /**
             * @description Id with the prefix `msg_`
             * @example msg_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /** @description True once every delivery is `delivered` */
            delivered: boolean;
            /** @description Text of the payload, byte for byte as the client sent it; null once it is erased, for a client or because its app stores payloads until they are delivered */
            payload: string | null;
            tags: string[];
            externalId: string | null;
            orderingKey: string | null;
            deliverAt: components["schemas"]["Time"] | null;
            expiresAt: components["schemas"]["Time"] | null;
            /** @description As the client sent it; null for as long as messages of the installation are kept */
            retentionDays: number | null;
            /** @description Why the message goes to no webhook: its app has none, none that selects its event type, or none whose filter it passes. Null when it goes to some */
            noTargetReason: ("no_webhook" | "event_type" | "filter") | null;
            createdAt: components["schemas"]["Time"];
            updatedAt: components["schemas"]["Time"];
            /** @description One for each webhook, oldest webhook first */
            deliveries: components["schemas"]["DeliverySummary"][];
            /** @description Null for a message to one webhook */
            appId: string | null;
            eventType: string | null;
            status: components["schemas"]["MessageStatus"];
        };
        ListedMessageListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["ListedMessage"][];
            /** @description The `cursor` of the next page; null on the last page */
            nextCursor: string | null;
        };
        Message: {
            /**
             * @description Id with the prefix `msg_`
             * @example msg_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /** @description True once every delivery is `delivered` */
            delivered: boolean;
            /** @description Text of the payload, byte for byte as the client sent it; null once it is erased, for a client or because its app stores payloads until they are delivered */
            payload: string | null;
            /** @description Hex HMAC SHA-256 of the payload, as the oldest webhook gets it; null without a webhook */
            signature: string | null;
            headers: components["schemas"]["Header"][];
            tags: string[];
            externalId: string | null;
            orderingKey: string | null;
            deliverAt: components["schemas"]["Time"] | null;
            expiresAt: components["schemas"]["Time"] | null;
            /** @description As the client sent it; null for as long as messages of the installation are kept */
            retentionDays: number | null;
            /** @description Why the message goes to no webhook: its app has none, none that selects its event type, or none whose filter it passes. Null when it goes to some */
            noTargetReason: ("no_webhook" | "event_type" | "filter") | null;
            createdAt: components["schemas"]["Time"];
            updatedAt: components["schemas"]["Time"];
            /** @description Last attempt of the oldest webhook, or the first one before it is made; null without a webhook */
            deliveryAttempt: components["schemas"]["Attempt"] | null;
            /** @description One for each webhook, oldest webhook first */
            deliveries: components["schemas"]["DeliverySummary"][];
            /** @description Null for a message to one webhook */
            appId: string | null;
            eventType: string | null;
            status: components["schemas"]["MessageStatus"];
        };
        MessageResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["Message"];
        };
        DeliveryListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["Delivery"][];
            /** @description The `cursor` of the next page; null on the last page */
            nextCursor: string | null;
        };
        ErasedPayload: {
            /** @constant */
            erased: true;
            /** @description Until when records in Kafka have the payload; null when none has it */
            kafkaUntil: components["schemas"]["Time"] | null;
        };
        ErasedPayloadResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["ErasedPayload"];
        };
        ErasedResponses: {
            /** @constant */
            erased: true;
        };
        ErasedResponsesResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["ErasedResponses"];
        };
        CreateMessages: {
            messages: components["schemas"]["BatchMessage"][];
        };
        BatchMessage: {
            /** @example app_01kdyx3m9e7r8s5tqv2wzcbn4a */
            appId?: string | null;
            /** @example wh_01kdyx3m9e7r8s5tqv2wzcbn4a */
            webhookId?: string | null;
            /** @example order.paid */
            eventType?: string | null;
            /** @description Texts by which you find the message in the list of messages */
            tags?: string[] | null;
            /**
             * @description Your own id of the message. Several messages may have the same
             * @example evt-2026-000017
             */
            externalId?: string | null;
            /**
             * @description Deliveries of messages with the same key to a webhook with `ordering` follow each other. Not together with `deliverAt`
             * @example order-17
             */
            orderingKey?: string | null;
            /**
             * @description No attempt begins before it: a second to 30 days in the future, and earlier than `expiresAt`
             * @example 2026-01-31T09:30:00.000Z
             */
            deliverAt?: string | null;
            /**
             * @description No attempt begins from then on: deliveries that are pending are cancelled. In the future
             * @example 2026-01-31T09:30:00.000Z
             */
            expiresAt?: string | null;
            /**
             * @description The message, its deliveries and their attempts are removed so many days after its creation. Not more than the installation keeps others
             * @example 7
             */
            retentionDays?: number | null;
            /**
             * @description Delivered byte for byte as it is written here
             * @example {
             *       "order": 17,
             *       "total": "12.50"
             *     }
             */
            payload: {
                [key: string]: unknown;
            };
            /**
             * @description Makes the message safe to repeat, as the header `Idempotency-Key` does for a single one. By default the key in the header of this request, `#` and the place of the message
             * @example order-17-paid
             */
            idempotencyKey?: string | null;
        };
        CreatedMessages: {
            /** @description Messages that are stored durably now */
            accepted: number;
            /** @description Repeats, for which nothing was stored */
            replayed: number;
            failed: number;
            /** @description One for each message, in the order of the request */
            results: components["schemas"]["MessageResult"][];
        };
        MessageResult: {
            /** @description Place in `messages`, from 0 */
            index: number;
            /** @enum {string} */
            status: "accepted" | "replayed" | "failed";
            /**
             * @description Absent with `failed`
             * @example msg_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            messageId?: string;
            /** @description How many webhooks the message goes to. Absent with `failed` */
            deliveries?: number;
            /** @description Why it failed. Each cause has one fixed code */
            code?: string;
            /** @description For people. The text may change */
            message?: string;
        };
        CreatedMessagesResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["CreatedMessages"];
        };
        ListedDelivery: {
            /**
             * @description Id with the prefix `dlv_`
             * @example dlv_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /**
             * @description Id with the prefix `msg_`
             * @example msg_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            messageId: string;
            /**
             * @description Id with the prefix `wh_`
             * @example wh_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            webhookId: string;
            status: components["schemas"]["DeliveryStatus"];
            /** @description Why the delivery was cancelled, or exhausted before all attempts were made; null otherwise */
            reason: ("webhook_deleted" | "webhook_disabled" | "message_missing" | "cancelled_by_client" | "payload_erased" | "expired_while_waiting" | "expired" | "gone" | "not_retryable" | "aborted") | null;
            attemptCount: number;
            nextAttemptAt: components["schemas"]["Time"] | null;
            /** @description Why it waits without a planned attempt. `hold`: its webhook or app is on hold, or was and it is to be released; null while it does not wait */
            waiting: ("hold" | "order" | "time") | null;
            waitingSince: components["schemas"]["Time"] | null;
            createdAt: components["schemas"]["Time"];
            updatedAt: components["schemas"]["Time"];
            /** @description Null for a message to one webhook */
            appId: string | null;
            eventType: string | null;
            /** @description How the last attempt ended; null before the first one */
            lastOutcome: ("success" | "http_3xx" | "http_4xx" | "http_429" | "http_5xx" | "timeout" | "dns_error" | "connect_error" | "tls_error" | "egress_blocked" | "response_too_large" | "aborted" | "token_failed") | null;
        };
        ListedDeliveryListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["ListedDelivery"][];
            /** @description The `cursor` of the next page; null on the last page */
            nextCursor: string | null;
        };
        CancelPending: {
            /**
             * @description Only deliveries that were created before. Defaults to the time of the request
             * @example 2026-01-31T09:30:00.000Z
             */
            createdBefore?: string | null;
        };
        PendingCancelled: {
            /**
             * @description Pending deliveries that were created before are cancelled; a later time than that of the request when one was given before
             * @example 2026-01-31T09:30:00.000Z
             */
            cancelBefore: components["schemas"]["Time"];
        };
        PendingCancelledResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["PendingCancelled"];
        };
        DeliveryPlan: {
            /** @description Deliveries that the filter selects now */
            deliveries: number;
            /** @description Webhooks that these deliveries are to */
            webhooks: number;
            /** @description False when 100,000 deliveries or messages were read, or five seconds were over: then there are at least so many */
            isComplete: boolean;
        };
        DeliveryPlanResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["DeliveryPlan"];
        };
        DeliveryFilter: {
            /** @description Only deliveries with this status, or with one of several with commas between them */
            status?: string | null;
            /** @description Only pending deliveries that wait without an attempt to come: on `hold`, or for the `time` of their message */
            waiting?: ("hold" | "order" | "time") | null;
            /** @description Only deliveries that were cancelled or exhausted for this reason; `all_attempts`: exhausted without a reason, because all of their attempts were made */
            reason?: ("webhook_deleted" | "webhook_disabled" | "message_missing" | "cancelled_by_client" | "payload_erased" | "expired_while_waiting" | "expired" | "gone" | "not_retryable" | "aborted" | "all_attempts") | null;
            /** @example wh_01kdyx3m9e7r8s5tqv2wzcbn4a */
            webhookId?: string | null;
            /**
             * @description Only deliveries of messages to this app
             * @example app_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            appId?: string | null;
            /**
             * @description Only deliveries of messages with exactly this event type
             * @example order.paid
             */
            eventType?: string | null;
            /**
             * @description Only deliveries of messages that were created at this time or later
             * @example 2026-01-31T09:30:00.000Z
             */
            since?: string | null;
            /**
             * @description Only deliveries of messages that were created at this time or earlier
             * @example 2026-01-31T09:30:00.000Z
             */
            until?: string | null;
        };
        Cancellation: {
            /**
             * @description Id with the prefix `cncl_`
             * @example cncl_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /**
             * @description `running` until every selected delivery is stored as cancelled
             * @enum {string}
             */
            status: "running" | "done";
            filter: {
                /** @example pending */
                status: string | null;
                waiting: ("hold" | "order" | "time") | null;
                reason: ("webhook_deleted" | "webhook_disabled" | "message_missing" | "cancelled_by_client" | "payload_erased" | "expired_while_waiting" | "expired" | "gone" | "not_retryable" | "aborted" | "all_attempts") | null;
                webhookId: string | null;
                appId: string | null;
                eventType: string | null;
                since: components["schemas"]["Time"] | null;
                until: components["schemas"]["Time"] | null;
            };
            /**
             * @description Only deliveries that were created before: what is created later is delivered
             * @example 2026-01-31T09:30:00.000Z
             */
            createdBefore: components["schemas"]["Time"];
            /** @description Deliveries that were found pending and are cancelled now. One whose attempt came due before that is cancelled too, and not counted */
            cancelled: number;
            createdAt: components["schemas"]["Time"];
            updatedAt: components["schemas"]["Time"];
        };
        CancellationResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["Cancellation"];
        };
        CancellationListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["Cancellation"][];
            /** @description The `cursor` of the next page; null on the last page */
            nextCursor: string | null;
        };
        ResendListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["Resend"][];
            /** @description The `cursor` of the next page; null on the last page */
            nextCursor: string | null;
        };
        SourceIps: {
            /** @description Address ranges, such as 203.0.113.8/32; empty when the operator has not named them */
            ranges: string[];
        };
        SourceIpsResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["SourceIps"];
        };
        CreateApiKey: {
            /** @example Orders */
            name: string;
            /** @description What the key may do. `read` shows no secrets; `admin` includes all others. All when left out */
            scopes?: ("messages:write" | "read" | "webhooks:write" | "keys:write" | "admin")[] | null;
            /**
             * @description The only app that the key may be used for. The whole company when left out
             * @example app_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            appId?: string | null;
            /**
             * @description When the key stops working. Never when left out
             * @example 2026-01-31T09:30:00.000Z
             */
            expiresAt?: string | null;
        };
        CreatedApiKey: {
            /**
             * @description Id with the prefix `key_`
             * @example key_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            name: string;
            /** @description The first characters of the key */
            prefix: string;
            /** @description What the key may do */
            scopes: ("messages:write" | "read" | "webhooks:write" | "keys:write" | "admin")[];
            /** @description The only app that the key may be used for; null for the whole company */
            appId: string | null;
            /** @description Null for never */
            expiresAt: components["schemas"]["Time"] | null;
            /** @description To the minute; null before the first use */
            lastUsedAt: components["schemas"]["Time"] | null;
            /** @description A sign-in link or a portal link made it, for its session. Nobody knows the key, and it cannot be rotated */
            ofLink: boolean;
            /** @description The person who made it in a session of the dashboard, also when they are removed; null for one that an API key, an operator or a link made */
            createdBy: string | null;
            createdAt: components["schemas"]["Time"];
            /**
             * @description The key itself. Returned here only, and null when a repeat with the same `Idempotency-Key` gets the response again
             * @example phk_Y2hvb3NlIHlvdXIgb3duIGtleSB3aXNlbHksIGZyaWVuZHM4RkQ2
             */
            key: string | null;
        };
        CreatedApiKeyResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["CreatedApiKey"];
        };
        ApiKey: {
            /**
             * @description Id with the prefix `key_`
             * @example key_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            name: string;
            /** @description The first characters of the key */
            prefix: string;
            /** @description What the key may do */
            scopes: ("messages:write" | "read" | "webhooks:write" | "keys:write" | "admin")[];
            /** @description The only app that the key may be used for; null for the whole company */
            appId: string | null;
            /** @description Null for never */
            expiresAt: components["schemas"]["Time"] | null;
            /** @description To the minute; null before the first use */
            lastUsedAt: components["schemas"]["Time"] | null;
            /** @description A sign-in link or a portal link made it, for its session. Nobody knows the key, and it cannot be rotated */
            ofLink: boolean;
            /** @description The person who made it in a session of the dashboard, also when they are removed; null for one that an API key, an operator or a link made */
            createdBy: string | null;
            createdAt: components["schemas"]["Time"];
        };
        ApiKeyListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["ApiKey"][];
        };
        RotateApiKey: {
            /** @description How long the old key works beside the new one, in seconds */
            graceSeconds?: number | null;
        };
        Me: {
            /**
             * @description Id with the prefix `comp_`
             * @example comp_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            companyId: string;
            companyName: string;
            /**
             * @description Id with the prefix `key_`
             * @example key_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            keyId: string;
            keyName: string;
            /** @description What the key may do */
            scopes: ("messages:write" | "read" | "webhooks:write" | "keys:write" | "admin")[];
            /** @description The only app that the key may be used for; null for the whole company */
            appId: string | null;
            /** @description Null for never */
            expiresAt: components["schemas"]["Time"] | null;
            person: components["schemas"]["SignedInPerson"];
            /**
             * @description The version of Posthorn
             * @example 1.0.0
             */
            serverVersion: string;
        };
        /** @description The person whose session it is; null for an API key */
        SignedInPerson: {
            /**
             * @description Id with the prefix `usr_`
             * @example usr_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /** @example Ada */
            name: string | null;
            /** @enum {string} */
            role: "viewer" | "support" | "admin";
        } | null;
        MeResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["Me"];
        };
        SigningKey: {
            /**
             * @description The `kid` of the key in the JWK Set
             * @example skey_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /** @constant */
            algorithm: "ed25519";
            /**
             * @description `whpk_` and the base64 of 32 bytes, as Standard Webhooks spells it
             * @example whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
             */
            publicKey: string;
            createdAt: components["schemas"]["Time"];
            /** @description When it stops signing; null until it is rotated */
            expiresAt: components["schemas"]["Time"] | null;
        };
        SigningKeyListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["SigningKey"][];
        };
        RotateSigningKey: {
            /** @description How long the old key signs beside the new one, in seconds */
            graceSeconds?: number | null;
        };
        SigningKeyResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["SigningKey"];
        };
        AuditEvent: {
            /**
             * @description Id with the prefix `aud_`
             * @example aud_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /**
             * @example webhook.updated
             * @enum {string}
             */
            action: "company.created" | "company.suspended" | "company.resumed" | "company.exported" | "company.deleted" | "api_key.created" | "api_key.rotated" | "api_key.revoked" | "signing_key.rotated" | "dashboard_link.created" | "dashboard.signed_in" | "portal_link.created" | "portal_link.revoked" | "portal.signed_in" | "portal_settings.updated" | "person.signed_in" | "person.signed_out" | "person.invited" | "person.updated" | "person.removed" | "person.sessions_ended" | "invitation.revoked" | "people_settings.updated" | "project.created" | "project.updated" | "project.deleted" | "event_type.created" | "event_type.updated" | "event_type.deleted" | "event_type.imported" | "app.created" | "app.updated" | "app.deleted" | "app.held" | "app.resumed" | "webhook.created" | "webhook.updated" | "webhook.deleted" | "webhook.secret_rotated" | "webhook.secrets_read" | "webhook.tested" | "webhook.pending_cancelled" | "webhook.ordering_key_skipped" | "delivery.cancelled" | "deliveries.cancelled" | "message.payload_erased" | "delivery.responses_erased" | "webhook.held" | "webhook.resumed" | "resend.started" | "resend.aborted" | "replay.started" | "dead_letters.replayed" | "ingest_rejects.replayed" | "encryption_keys.rotated";
            actor: components["schemas"]["AuditActor"];
            target: components["schemas"]["AuditTarget"];
            /**
             * @description IP address of the client; null for an operator and for Posthorn
             * @example 192.0.2.7
             */
            clientAddress: string | null;
            /** @description `X-Request-Id` of the request; null for an operator and for Posthorn */
            requestId: string | null;
            /**
             * @description `failed`: the request was refused, and nothing was changed. `started`: the request still runs, or its process ended, or the store did not confirm a write; the change may have been made
             * @example done
             * @enum {string}
             */
            outcome: "started" | "done" | "failed";
            /**
             * @description Error code of the response; null unless `failed`
             * @example null
             */
            code: string | null;
            /** @description The fields that were changed; what was asked for until the event is `done`. `********` stands for a value that the log does not hold */
            changes: components["schemas"]["AuditChange"][];
            /**
             * @description How many webhooks were shown; null unless secrets were read
             * @example null
             */
            count: number | null;
            createdAt: components["schemas"]["Time"];
            /** @description Null while `started` */
            completedAt: components["schemas"]["Time"] | null;
        };
        /** @description Who did it: an API key, a visitor of the portal, a person who signed in, an operator (`admin`), or Posthorn itself (`system`) */
        AuditActor: components["schemas"]["ApiKeyActor"] | components["schemas"]["PortalLinkActor"] | components["schemas"]["PersonActor"] | components["schemas"]["ActorWithoutId"];
        ApiKeyActor: {
            /** @constant */
            kind: "apiKey";
            /**
             * @description Id with the prefix `key_`
             * @example key_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            keyId: string;
        };
        PortalLinkActor: {
            /** @constant */
            kind: "portalLink";
            /**
             * @description Id with the prefix `plnk_`
             * @example plnk_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            linkId: string;
        };
        PersonActor: {
            /** @constant */
            kind: "person";
            /**
             * @description Id with the prefix `usr_`
             * @example usr_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            personId: string;
            /**
             * @description As it was then
             * @example Ada
             */
            name: string | null;
        };
        ActorWithoutId: {
            /** @enum {string} */
            kind: "admin" | "system";
        };
        AuditTarget: {
            /**
             * @example webhook
             * @enum {string}
             */
            kind: "company" | "apiKey" | "signingKey" | "portalLink" | "person" | "invitation" | "project" | "eventType" | "app" | "webhook" | "message" | "delivery" | "resend" | "cancellation" | "deadLetters" | "ingestRejects" | "encryptionKeys";
            /** @description Null for several at once, and for one that was not created */
            id: string | null;
        };
        AuditChange: {
            /** @example name */
            field: string;
            before: components["schemas"]["AuditValue"];
            after: components["schemas"]["AuditValue"];
        };
        /**
         * @description Null for a field without a value
         * @example Orders
         */
        AuditValue: string | number | boolean | string[] | null;
        AuditEventListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["AuditEvent"][];
            /** @description The `cursor` of the next page; null on the last page */
            nextCursor: string | null;
        };
        Stats: {
            /** @enum {string} */
            step: "minute" | "hour" | "day";
            /**
             * @description The beginning of the first step that was searched
             * @example 2026-01-31T09:30:00.000Z
             */
            from: components["schemas"]["Time"];
            /**
             * @description The end of the last one
             * @example 2026-01-31T09:30:00.000Z
             */
            to: components["schemas"]["Time"];
            /** @description Oldest first */
            points: components["schemas"]["StatsPoint"][];
        };
        StatsPoint: {
            /**
             * @description The beginning of the minute, hour or day, in UTC
             * @example 2026-01-31T09:30:00.000Z
             */
            at: components["schemas"]["Time"];
            attempts: number;
            succeeded: number;
            failed: number;
            /**
             * @description Attempts by outcome; those that did not happen are left out
             * @example {
             *       "success": 118,
             *       "http_5xx": 2
             *     }
             */
            outcomes: {
                [key: string]: number;
            };
            /** @description Attempts that were the first of their delivery */
            firstAttempts: number;
            /** @description Bytes of the payloads that were sent */
            payloadBytes: number;
            latencyMs: components["schemas"]["StatsLatency"];
        };
        /** @description How long the attempts took. Percentiles are estimates within the steps 1, 2, 5, 10 … 60,000 ms */
        StatsLatency: {
            mean: number;
            max: number;
            p50: number;
            p95: number;
            p99: number;
        };
        StatsResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["Stats"];
        };
        Overview: {
            asOf: components["schemas"]["Time"];
            /** @description Deliveries of accepted messages whose first attempt was made in the range */
            accepted: number;
            /** @description Attempts that succeeded */
            delivered: number;
            /** @description Attempts that failed */
            failed: number;
            /** @description Deliveries that wait for another attempt now. At most 10,000 are counted, and of an app those of its 200 oldest webhooks */
            pending: number;
            /** @description When the message of the oldest of them was accepted; null without any */
            oldestPendingAt: components["schemas"]["Time"] | null;
            /** @description Webhooks whose circuit is open now (`GET /api/v1/circuits`), at most 10,000; null while that is not known */
            openCircuits: number | null;
            /** @description Records in Kafka topics of the company that are not accepted as messages yet; null without a topic, for an app or webhook, and while that is not known */
            ingestLag: number | null;
            /**
             * @description Why the records of the partition with the most of them wait (docs/ingest.md); null without any, and while that is not known
             * @example rate_limited
             */
            ingestLagReason: ("no_process" | "no_reader" | "backlog" | "company_suspended" | "rate_limited" | "store_unavailable" | "waiting_for_budget" | "key_in_use" | "clock_wrong" | "rebalancing" | "unknown") | null;
            latencyMs: components["schemas"]["OverviewLatency"];
            /** @description Attempts by minute (`1h`), hour (`24h`, `7d`) or day (`30d`), oldest first */
            series: components["schemas"]["OverviewPoint"][];
            /** @description The ten webhooks with the most failed attempts */
            worst: components["schemas"]["WorstWebhook"][];
        };
        /** @description How long the attempts took; null without any */
        OverviewLatency: {
            p50: number | null;
            p99: number | null;
        };
        OverviewPoint: {
            at: components["schemas"]["Time"];
            delivered: number;
            failed: number;
        };
        WorstWebhook: {
            /**
             * @description Id with the prefix `wh_`
             * @example wh_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            webhookId: string;
            url: string;
            /** @description Null for a global webhook */
            appId: string | null;
            /** @description Of its attempts in the range, from 0 to 1 */
            successRatio: number;
            failed: number;
            /**
             * @description The outcome of most of its failed attempts
             * @example timeout
             * @enum {string}
             */
            reason: "success" | "http_3xx" | "http_4xx" | "http_429" | "http_5xx" | "timeout" | "dns_error" | "connect_error" | "tls_error" | "egress_blocked" | "response_too_large" | "aborted" | "token_failed";
            /**
             * @description The beginning of the first minute or hour of the range with a failure
             * @example 2026-01-31T09:30:00.000Z
             */
            since: components["schemas"]["Time"];
        };
        OverviewResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["Overview"];
        };
        FailureGroup: {
            /**
             * @description Id with the prefix `wh_`
             * @example wh_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            webhookId: string;
            url: string;
            /** @description Null for a global webhook */
            appId: string | null;
            /**
             * @example http_5xx
             * @enum {string}
             */
            outcome: "success" | "http_3xx" | "http_4xx" | "http_429" | "http_5xx" | "timeout" | "dns_error" | "connect_error" | "tls_error" | "egress_blocked" | "response_too_large" | "aborted" | "token_failed";
            count: number;
            /**
             * @description The beginning of the hour of the first one
             * @example 2026-01-31T09:30:00.000Z
             */
            firstAt: components["schemas"]["Time"];
            /**
             * @description The beginning of the hour of the last one
             * @example 2026-01-31T09:30:00.000Z
             */
            lastAt: components["schemas"]["Time"];
        };
        FailureGroupListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["FailureGroup"][];
        };
        /** @description What has the id, and what it belongs to */
        Found: {
            /** @enum {string} */
            kind: "project" | "app" | "webhook" | "message" | "delivery" | "attempt" | "resend" | "cancellation" | "api_key";
            /** @example msg_01kdyx3m9e7r8s5tqv2wzcbn4a */
            id: string;
            /**
             * @description Id with the prefix `app_`
             * @example app_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            appId?: string;
            /**
             * @description Id with the prefix `msg_`
             * @example msg_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            messageId?: string;
            /**
             * @description Id with the prefix `dlv_`
             * @example dlv_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            deliveryId?: string;
            /**
             * @description Id with the prefix `wh_`
             * @example wh_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            webhookId?: string;
        };
        FoundResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["Found"];
        };
        OpenCircuit: {
            /**
             * @description Id with the prefix `wh_`
             * @example wh_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            webhookId: string;
            url: string;
            /** @description Null for a global webhook */
            appId: string | null;
            /**
             * @description `half_open`: the next attempt decides whether it closes
             * @enum {string}
             */
            circuit: "open" | "half_open";
            /**
             * @description When it opened, without a success since
             * @example 2026-01-31T09:30:00.000Z
             */
            since: components["schemas"]["Time"];
            /**
             * @description When the next attempt may be made
             * @example 2026-01-31T09:30:00.000Z
             */
            probeAt: components["schemas"]["Time"];
        };
        OpenCircuitListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["OpenCircuit"][];
        };
        FoundApp: {
            /**
             * @description Id with the prefix `app_`
             * @example app_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            uid: string | null;
            name: string;
            /** @enum {string} */
            environment: "development" | "production";
            /** @description Deliveries wait until it ends; null while there is none */
            held: components["schemas"]["Hold"] | null;
            /**
             * @description Id with the prefix `proj_`
             * @example proj_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            projectId: string;
            projectName: string;
        };
        FoundAppListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["FoundApp"][];
            /** @description The `cursor` of the next page; null on the last page */
            nextCursor: string | null;
        };
        AppCounts: {
            /**
             * @description Id with the prefix `app_`
             * @example app_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            appId: string;
            /** @description Counted up to 10,000 */
            webhooks: number;
            /** @description Attempts of the last 24 hours that succeeded */
            succeeded: number;
            /** @description Attempts of the last 24 hours that failed */
            failed: number;
        };
        AppCountsListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["AppCounts"][];
        };
        FoundWebhook: {
            /**
             * @description Id with the prefix `wh_`
             * @example wh_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            uid: string | null;
            url: string;
            name: string;
            /** @description Empty for all */
            eventTypes: string[];
            disabled: boolean;
            /** @description Deliveries wait until it ends; null while there is none */
            held: components["schemas"]["Hold"] | null;
            /** @description Null for a global webhook */
            appId: string | null;
            appName: string | null;
            /** @description Of a global webhook */
            projectId: string | null;
            /** @description Of a global webhook */
            environmentId: string | null;
            createdAt: components["schemas"]["Time"];
        };
        FoundWebhookListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["FoundWebhook"][];
            /** @description The `cursor` of the next page; null on the last page */
            nextCursor: string | null;
        };
        CreatePortalLink: {
            /**
             * @description How long the link, and the visit that it begins, may last
             * @example 3600
             */
            expiresInSeconds: number;
            /**
             * @description What the visitor may do in the app. `view` is always included; `manage` changes webhooks, `secrets` shows their secrets, `resend` sends failed deliveries again
             * @example [
             *       "view",
             *       "resend"
             *     ]
             */
            capabilities: ("view" | "manage" | "secrets" | "resend" | "controlDeliveries")[];
            theme?: components["schemas"]["PortalTheme"] | null;
            /**
             * @description A page of the portal to begin with
             * @example /webhooks
             */
            path?: string | null;
        };
        PortalTheme: {
            /**
             * @description Stands above every page
             * @example Acme
             */
            name?: string;
            /**
             * @description An image as a `data:` URL, or the https URL of one at an origin of the portal settings: browsers load it from nowhere else
             * @example https://app.example.com/logo.svg
             */
            logoUrl?: string;
            /** @example #1c7ed6 */
            primaryColor?: string;
            /**
             * @description `auto` (default) is as the browser of the visitor prefers it
             * @enum {string}
             */
            colorScheme?: "light" | "dark" | "auto";
        };
        PortalLink: {
            /**
             * @description Id with the prefix `plnk_`
             * @example plnk_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /**
             * @description Opens the portal once. Whoever has it gets in: give it to one person. Null when a repeat with the same `Idempotency-Key` gets the response again
             * @example https://hooks.example.com/dashboard/portal/comp_01kdyx3m9e7r8s5tqv2wzcbn4a#Y2hv
             */
            url: string | null;
            expiresAt: components["schemas"]["Time"];
        };
        PortalLinkResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["PortalLink"];
        };
        ListedPortalLink: {
            /**
             * @description Id with the prefix `plnk_`
             * @example plnk_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /**
             * @description Id with the prefix `app_`
             * @example app_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            appId: string;
            /** @description The API key with which the link ends; null when it was revoked, or the app was deleted */
            apiKeyId: string | null;
            /**
             * @description `ended`: its API key was revoked or has expired, or its app was deleted
             * @enum {string}
             */
            status: "unopened" | "opened" | "ended";
            capabilities: ("view" | "manage" | "secrets" | "resend" | "controlDeliveries")[];
            createdAt: components["schemas"]["Time"];
            /** @description Null until somebody opened it */
            openedAt: components["schemas"]["Time"] | null;
            expiresAt: components["schemas"]["Time"];
        };
        ListedPortalLinkListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["ListedPortalLink"][];
        };
        PortalSettings: {
            /**
             * @description Of the pages that may show the portal in a frame, and of the images that themes name. None: the portal cannot be framed
             * @example [
             *       "https://app.example.com"
             *     ]
             */
            origins: string[];
        };
        PortalSettingsResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["PortalSettings"];
        };
        UpdatePortalSettings: {
            /**
             * @description Of the pages that may show the portal in a frame, and of the images that themes name. None: the portal cannot be framed
             * @example [
             *       "https://app.example.com"
             *     ]
             */
            origins?: string[];
        };
        Person: {
            /**
             * @description Id with the prefix `usr_`
             * @example usr_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /**
             * @description As the issuer says
             * @example Ada
             */
            name: string | null;
            /**
             * @description As the issuer says; it decides nothing
             * @example ada@example.com
             */
            email: string | null;
            role: components["schemas"]["Role"];
            /**
             * @description What grants the role, which is the higher one of both
             * @example group
             * @enum {string}
             */
            source: "group" | "invitation";
            /**
             * @description Whether sign-ins are refused
             * @example false
             */
            disabled: boolean;
            /**
             * @description How many API keys the person made
             * @example 2
             */
            apiKeys: number;
            createdAt: components["schemas"]["Time"];
            lastSignedInAt: components["schemas"]["Time"];
        };
        /**
         * @description `viewer` reads, `support` also sends, resends, cancels, replays and holds, `admin` may do all
         * @example support
         * @enum {string}
         */
        Role: "viewer" | "support" | "admin";
        PersonListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["Person"][];
        };
        PersonWithSessions: {
            /**
             * @description Id with the prefix `usr_`
             * @example usr_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /**
             * @description As the issuer says
             * @example Ada
             */
            name: string | null;
            /**
             * @description As the issuer says; it decides nothing
             * @example ada@example.com
             */
            email: string | null;
            role: components["schemas"]["Role"];
            /**
             * @description What grants the role, which is the higher one of both
             * @example group
             * @enum {string}
             */
            source: "group" | "invitation";
            /**
             * @description Whether sign-ins are refused
             * @example false
             */
            disabled: boolean;
            /**
             * @description How many API keys the person made
             * @example 2
             */
            apiKeys: number;
            createdAt: components["schemas"]["Time"];
            lastSignedInAt: components["schemas"]["Time"];
            sessions: components["schemas"]["PersonSession"][];
        };
        PersonSession: {
            /**
             * @description Id with the prefix `key_`
             * @example key_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /** @example 192.0.2.7 */
            clientAddress: string | null;
            /**
             * @description The browser
             * @example Mozilla/5.0
             */
            userAgent: string | null;
            startedAt: components["schemas"]["Time"];
            /** @description To the minute; null before the first use */
            lastUsedAt: components["schemas"]["Time"] | null;
            expiresAt: components["schemas"]["Time"];
        };
        PersonWithSessionsResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["PersonWithSessions"];
        };
        UpdatePerson: {
            role?: components["schemas"]["Role"];
            /** @example true */
            disabled?: boolean;
        };
        PersonResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["Person"];
        };
        EndPersonSessions: {
            /**
             * @description Only this one; all when left out
             * @example key_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            sessionId?: string | null;
        };
        EndedSessions: {
            /**
             * @description How many there were
             * @example 1
             */
            ended: number;
        };
        EndedSessionsResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["EndedSessions"];
        };
        PeopleSettings: {
            /** @description Everyone in one of these groups has its role, the highest of several */
            groups: {
                /**
                 * @description As the claim OIDC_GROUPS_CLAIM has it, compared exactly
                 * @example helpdesk
                 */
                group: string;
                role: components["schemas"]["Role"];
            }[];
        };
        PeopleSettingsResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["PeopleSettings"];
        };
        UpdatePeopleSettings: {
            /** @description Everyone in one of these groups has its role, the highest of several */
            groups?: {
                /**
                 * @description As the claim OIDC_GROUPS_CLAIM has it, compared exactly
                 * @example helpdesk
                 */
                group: string;
                role: components["schemas"]["Role"];
            }[];
        };
        CreateInvitation: {
            role: components["schemas"]["Role"];
            /**
             * @description For those who see the list
             * @example Sam
             */
            name?: string | null;
            /**
             * @description For those who see the list; nothing is sent there
             * @example sam@example.com
             */
            email?: string | null;
            /**
             * @description How long the invitation may be used; a day when left out
             * @example 86400
             */
            expiresInSeconds?: number | null;
        };
        CreatedInvitation: {
            /**
             * @description Id with the prefix `inv_`
             * @example inv_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            /**
             * @description Opens once. Whoever signs in with it becomes a person of the company: give it to one person. Null when a repeat with the same `Idempotency-Key` gets the response again
             * @example https://hooks.example.com/dashboard/invitation#Y2hv
             */
            url: string | null;
            expiresAt: components["schemas"]["Time"];
        };
        CreatedInvitationResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["CreatedInvitation"];
        };
        Invitation: {
            /**
             * @description Id with the prefix `inv_`
             * @example inv_01kdyx3m9e7r8s5tqv2wzcbn4a
             */
            id: string;
            role: components["schemas"]["Role"];
            /** @example Sam */
            name: string | null;
            /** @example sam@example.com */
            email: string | null;
            /** @description Id of the API key or of the person that invited */
            by: string;
            createdAt: components["schemas"]["Time"];
            expiresAt: components["schemas"]["Time"];
        };
        InvitationListResponse: {
            /** @constant */
            success: true;
            /** @description For people. The text may change */
            message: string;
            data: components["schemas"]["Invitation"][];
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type Failure = components['schemas']['Failure'];
export type Problem = components['schemas']['Problem'];
export type CreateProject = components['schemas']['CreateProject'];
export type CreatedProject = components['schemas']['CreatedProject'];
export type Time = components['schemas']['Time'];
export type CreatedProjectResponse = components['schemas']['CreatedProjectResponse'];
export type Project = components['schemas']['Project'];
export type ProjectListResponse = components['schemas']['ProjectListResponse'];
export type ProjectResponse = components['schemas']['ProjectResponse'];
export type UpdateProject = components['schemas']['UpdateProject'];
export type EmptyResponse = components['schemas']['EmptyResponse'];
export type CreateApp = components['schemas']['CreateApp'];
export type StorePayloads = components['schemas']['StorePayloads'];
export type App = components['schemas']['App'];
export type Hold = components['schemas']['Hold'];
export type AppResponse = components['schemas']['AppResponse'];
export type AppListResponse = components['schemas']['AppListResponse'];
export type UpdateApp = components['schemas']['UpdateApp'];
export type CreateEventType = components['schemas']['CreateEventType'];
export type EventType = components['schemas']['EventType'];
export type EventTypeResponse = components['schemas']['EventTypeResponse'];
export type ListedEventType = components['schemas']['ListedEventType'];
export type ListedEventTypeListResponse = components['schemas']['ListedEventTypeListResponse'];
export type UpdateEventType = components['schemas']['UpdateEventType'];
export type ImportEventTypes = components['schemas']['ImportEventTypes'];
export type ImportedEventTypes = components['schemas']['ImportedEventTypes'];
export type ImportedEventTypesResponse = components['schemas']['ImportedEventTypesResponse'];
export type OpenApiDocument = components['schemas']['OpenApiDocument'];
export type OpenApiDocumentResponse = components['schemas']['OpenApiDocumentResponse'];
export type CreateWebhook = components['schemas']['CreateWebhook'];
export type CustomHeader = components['schemas']['CustomHeader'];
export type HeaderName = components['schemas']['HeaderName'];
export type EndpointTls = components['schemas']['EndpointTls'];
export type AuthMethodName = components['schemas']['AuthMethodName'];
export type SignatureAlgorithm = components['schemas']['SignatureAlgorithm'];
export type ClientAuthentication = components['schemas']['ClientAuthentication'];
export type WebhookWithAuth = components['schemas']['WebhookWithAuth'];
export type Header = components['schemas']['Header'];
export type AuthMethod = components['schemas']['AuthMethod'];
export type HmacAuth = components['schemas']['HmacAuth'];
export type ApiKeyAuth = components['schemas']['ApiKeyAuth'];
export type BasicAuth = components['schemas']['BasicAuth'];
export type Oauth2Auth = components['schemas']['Oauth2Auth'];
export type ShownTls = components['schemas']['ShownTls'];
export type ShownCertificate = components['schemas']['ShownCertificate'];
export type WebhookWithAuthResponse = components['schemas']['WebhookWithAuthResponse'];
export type Webhook = components['schemas']['Webhook'];
export type WebhookListResponse = components['schemas']['WebhookListResponse'];
export type UpdateWebhook = components['schemas']['UpdateWebhook'];
export type WebhookResponse = components['schemas']['WebhookResponse'];
export type RotateSecret = components['schemas']['RotateSecret'];
export type TestWebhook = components['schemas']['TestWebhook'];
export type Delivery = components['schemas']['Delivery'];
export type DeliveryStatus = components['schemas']['DeliveryStatus'];
export type MadeAttempt = components['schemas']['MadeAttempt'];
export type DeliveryResponse = components['schemas']['DeliveryResponse'];
export type WebhookHealth = components['schemas']['WebhookHealth'];
export type HealthLatency = components['schemas']['HealthLatency'];
export type HealthConcurrency = components['schemas']['HealthConcurrency'];
export type WebhookHealthResponse = components['schemas']['WebhookHealthResponse'];
export type BeginHold = components['schemas']['BeginHold'];
export type EndHold = components['schemas']['EndHold'];
export type OrderingKey = components['schemas']['OrderingKey'];
export type OrderingKeyListResponse = components['schemas']['OrderingKeyListResponse'];
export type SkipOrderingKey = components['schemas']['SkipOrderingKey'];
export type SkippedOrderingKey = components['schemas']['SkippedOrderingKey'];
export type SkippedOrderingKeyResponse = components['schemas']['SkippedOrderingKeyResponse'];
export type ResendFailedOfWebhook = components['schemas']['ResendFailedOfWebhook'];
export type Resend = components['schemas']['Resend'];
export type ResendResponse = components['schemas']['ResendResponse'];
export type ResendFailed = components['schemas']['ResendFailed'];
export type ResendEstimate = components['schemas']['ResendEstimate'];
export type ResendEstimateResponse = components['schemas']['ResendEstimateResponse'];
export type ReplayMissing = components['schemas']['ReplayMissing'];
export type ReplayEstimate = components['schemas']['ReplayEstimate'];
export type ReplayEstimateResponse = components['schemas']['ReplayEstimateResponse'];
export type TestFilter = components['schemas']['TestFilter'];
export type TestedFilter = components['schemas']['TestedFilter'];
export type TestedFilterResponse = components['schemas']['TestedFilterResponse'];
export type CreateMessage = components['schemas']['CreateMessage'];
export type CreatedMessage = components['schemas']['CreatedMessage'];
export type Attempt = components['schemas']['Attempt'];
export type DeliverySummary = components['schemas']['DeliverySummary'];
export type CreatedMessageResponse = components['schemas']['CreatedMessageResponse'];
export type MessageStatus = components['schemas']['MessageStatus'];
export type ListedMessage = components['schemas']['ListedMessage'];
export type ListedMessageListResponse = components['schemas']['ListedMessageListResponse'];
export type Message = components['schemas']['Message'];
export type MessageResponse = components['schemas']['MessageResponse'];
export type DeliveryListResponse = components['schemas']['DeliveryListResponse'];
export type ErasedPayload = components['schemas']['ErasedPayload'];
export type ErasedPayloadResponse = components['schemas']['ErasedPayloadResponse'];
export type ErasedResponses = components['schemas']['ErasedResponses'];
export type ErasedResponsesResponse = components['schemas']['ErasedResponsesResponse'];
export type CreateMessages = components['schemas']['CreateMessages'];
export type BatchMessage = components['schemas']['BatchMessage'];
export type CreatedMessages = components['schemas']['CreatedMessages'];
export type MessageResult = components['schemas']['MessageResult'];
export type CreatedMessagesResponse = components['schemas']['CreatedMessagesResponse'];
export type ListedDelivery = components['schemas']['ListedDelivery'];
export type ListedDeliveryListResponse = components['schemas']['ListedDeliveryListResponse'];
export type CancelPending = components['schemas']['CancelPending'];
export type PendingCancelled = components['schemas']['PendingCancelled'];
export type PendingCancelledResponse = components['schemas']['PendingCancelledResponse'];
export type DeliveryPlan = components['schemas']['DeliveryPlan'];
export type DeliveryPlanResponse = components['schemas']['DeliveryPlanResponse'];
export type DeliveryFilter = components['schemas']['DeliveryFilter'];
export type Cancellation = components['schemas']['Cancellation'];
export type CancellationResponse = components['schemas']['CancellationResponse'];
export type CancellationListResponse = components['schemas']['CancellationListResponse'];
export type ResendListResponse = components['schemas']['ResendListResponse'];
export type SourceIps = components['schemas']['SourceIps'];
export type SourceIpsResponse = components['schemas']['SourceIpsResponse'];
export type CreateApiKey = components['schemas']['CreateApiKey'];
export type CreatedApiKey = components['schemas']['CreatedApiKey'];
export type CreatedApiKeyResponse = components['schemas']['CreatedApiKeyResponse'];
export type ApiKey = components['schemas']['ApiKey'];
export type ApiKeyListResponse = components['schemas']['ApiKeyListResponse'];
export type RotateApiKey = components['schemas']['RotateApiKey'];
export type Me = components['schemas']['Me'];
export type SignedInPerson = components['schemas']['SignedInPerson'];
export type MeResponse = components['schemas']['MeResponse'];
export type SigningKey = components['schemas']['SigningKey'];
export type SigningKeyListResponse = components['schemas']['SigningKeyListResponse'];
export type RotateSigningKey = components['schemas']['RotateSigningKey'];
export type SigningKeyResponse = components['schemas']['SigningKeyResponse'];
export type AuditEvent = components['schemas']['AuditEvent'];
export type AuditActor = components['schemas']['AuditActor'];
export type ApiKeyActor = components['schemas']['ApiKeyActor'];
export type PortalLinkActor = components['schemas']['PortalLinkActor'];
export type PersonActor = components['schemas']['PersonActor'];
export type ActorWithoutId = components['schemas']['ActorWithoutId'];
export type AuditTarget = components['schemas']['AuditTarget'];
export type AuditChange = components['schemas']['AuditChange'];
export type AuditValue = components['schemas']['AuditValue'];
export type AuditEventListResponse = components['schemas']['AuditEventListResponse'];
export type Stats = components['schemas']['Stats'];
export type StatsPoint = components['schemas']['StatsPoint'];
export type StatsLatency = components['schemas']['StatsLatency'];
export type StatsResponse = components['schemas']['StatsResponse'];
export type Overview = components['schemas']['Overview'];
export type OverviewLatency = components['schemas']['OverviewLatency'];
export type OverviewPoint = components['schemas']['OverviewPoint'];
export type WorstWebhook = components['schemas']['WorstWebhook'];
export type OverviewResponse = components['schemas']['OverviewResponse'];
export type FailureGroup = components['schemas']['FailureGroup'];
export type FailureGroupListResponse = components['schemas']['FailureGroupListResponse'];
export type Found = components['schemas']['Found'];
export type FoundResponse = components['schemas']['FoundResponse'];
export type OpenCircuit = components['schemas']['OpenCircuit'];
export type OpenCircuitListResponse = components['schemas']['OpenCircuitListResponse'];
export type FoundApp = components['schemas']['FoundApp'];
export type FoundAppListResponse = components['schemas']['FoundAppListResponse'];
export type AppCounts = components['schemas']['AppCounts'];
export type AppCountsListResponse = components['schemas']['AppCountsListResponse'];
export type FoundWebhook = components['schemas']['FoundWebhook'];
export type FoundWebhookListResponse = components['schemas']['FoundWebhookListResponse'];
export type CreatePortalLink = components['schemas']['CreatePortalLink'];
export type PortalTheme = components['schemas']['PortalTheme'];
export type PortalLink = components['schemas']['PortalLink'];
export type PortalLinkResponse = components['schemas']['PortalLinkResponse'];
export type ListedPortalLink = components['schemas']['ListedPortalLink'];
export type ListedPortalLinkListResponse = components['schemas']['ListedPortalLinkListResponse'];
export type PortalSettings = components['schemas']['PortalSettings'];
export type PortalSettingsResponse = components['schemas']['PortalSettingsResponse'];
export type UpdatePortalSettings = components['schemas']['UpdatePortalSettings'];
export type Person = components['schemas']['Person'];
export type Role = components['schemas']['Role'];
export type PersonListResponse = components['schemas']['PersonListResponse'];
export type PersonWithSessions = components['schemas']['PersonWithSessions'];
export type PersonSession = components['schemas']['PersonSession'];
export type PersonWithSessionsResponse = components['schemas']['PersonWithSessionsResponse'];
export type UpdatePerson = components['schemas']['UpdatePerson'];
export type PersonResponse = components['schemas']['PersonResponse'];
export type EndPersonSessions = components['schemas']['EndPersonSessions'];
export type EndedSessions = components['schemas']['EndedSessions'];
export type EndedSessionsResponse = components['schemas']['EndedSessionsResponse'];
export type PeopleSettings = components['schemas']['PeopleSettings'];
export type PeopleSettingsResponse = components['schemas']['PeopleSettingsResponse'];
export type UpdatePeopleSettings = components['schemas']['UpdatePeopleSettings'];
export type CreateInvitation = components['schemas']['CreateInvitation'];
export type CreatedInvitation = components['schemas']['CreatedInvitation'];
export type CreatedInvitationResponse = components['schemas']['CreatedInvitationResponse'];
export type Invitation = components['schemas']['Invitation'];
export type InvitationListResponse = components['schemas']['InvitationListResponse'];
export type $defs = Record<string, never>;
export interface operations {
    listProjects: {
        parameters: {
            query?: {
                /** @description Most entries that the page may hold */
                limit?: number;
                /** @description Number of entries to skip before the page */
                skip?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Projects found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProjectListResponse"];
                };
            };
        };
    };
    createProject: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateProject"];
            };
        };
        responses: {
            /** @description Project created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedProjectResponse"];
                };
            };
        };
    };
    getProject: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                projectId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Project found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProjectResponse"];
                };
            };
        };
    };
    updateProject: {
        parameters: {
            query?: {
                /** @description With `true`, the address has a `uid:`, and the body is that of a creation: what has the uid is updated, and created when nothing has it */
                upsert?: boolean;
            };
            header?: never;
            path: {
                projectId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["UpdateProject"] | components["schemas"]["CreateProject"];
            };
        };
        responses: {
            /** @description Project updated */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProjectResponse"];
                };
            };
            /** @description Project created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProjectResponse"];
                };
            };
        };
    };
    deleteProject: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                projectId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Project deleted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmptyResponse"];
                };
            };
        };
    };
    listApps: {
        parameters: {
            query: {
                projectId: string;
                environment?: "development" | "production";
                /** @description Most entries that the page may hold */
                limit?: number;
                /** @description Number of entries to skip before the page */
                skip?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Apps found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AppListResponse"];
                };
            };
        };
    };
    createApp: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateApp"];
            };
        };
        responses: {
            /** @description App created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AppResponse"];
                };
            };
        };
    };
    getApp: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description App found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AppResponse"];
                };
            };
        };
    };
    updateApp: {
        parameters: {
            query?: {
                /** @description With `true`, the address has a `uid:`, and the body is that of a creation: what has the uid is updated, and created when nothing has it */
                upsert?: boolean;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["UpdateApp"] | components["schemas"]["CreateApp"];
            };
        };
        responses: {
            /** @description App updated */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AppResponse"];
                };
            };
            /** @description App created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AppResponse"];
                };
            };
        };
    };
    deleteApp: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description App deleted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmptyResponse"];
                };
            };
        };
    };
    listEventTypes: {
        parameters: {
            query?: {
                /** @description Only event types of this group */
                group?: string;
                /** @description Only archived ones, or only others */
                archived?: boolean;
                /** @description Most entries that the page may hold */
                limit?: number;
                /** @description Number of entries to skip before the page */
                skip?: number;
            };
            header?: never;
            path: {
                projectId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Event types found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListedEventTypeListResponse"];
                };
            };
        };
    };
    createEventType: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                projectId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateEventType"];
            };
        };
        responses: {
            /** @description Event type created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EventTypeResponse"];
                };
            };
        };
    };
    getEventType: {
        parameters: {
            query?: {
                /** @description Shows an earlier `schema`. The newest 20 are kept */
                version?: number;
            };
            header?: never;
            path: {
                projectId: string;
                eventTypeName: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Event type found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EventTypeResponse"];
                };
            };
        };
    };
    updateEventType: {
        parameters: {
            query?: {
                /** @description With `true`, the event type is created when the project has none of this name, with the fields of a creation */
                upsert?: boolean;
            };
            header?: never;
            path: {
                projectId: string;
                eventTypeName: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["UpdateEventType"] | {
                    /** @example order.paid */
                    name?: string;
                    /** @description For people, as plain text with its line breaks */
                    description?: string | null;
                    /**
                     * @description Event types of a group are listed together; by default those with the same first part
                     * @example Orders
                     */
                    group?: string | null;
                    /**
                     * @description JSON Schema 2020-12 of the payload, with the keywords of docs/event-types.md. At most 32768 bytes, 32 levels and 2,000 objects
                     * @example {
                     *       "type": "object",
                     *       "required": [
                     *         "amount"
                     *       ],
                     *       "properties": {
                     *         "amount": {
                     *           "type": "number"
                     *         }
                     *       }
                     *     }
                     */
                    schema?: {
                        [key: string]: unknown;
                    } | null;
                    /**
                     * @description A payload, which meets `schema`. At most 32768 bytes
                     * @example {
                     *       "amount": 12.5
                     *     }
                     */
                    example?: {
                        [key: string]: unknown;
                    } | null;
                    /** @description It works, and is marked wherever people choose */
                    deprecated?: boolean | null;
                    /** @description It is shown to nobody who chooses, and `eventTypePolicy` refuses its messages */
                    archived?: boolean | null;
                };
            };
        };
        responses: {
            /** @description Event type updated */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EventTypeResponse"];
                };
            };
            /** @description Event type created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EventTypeResponse"];
                };
            };
        };
    };
    deleteEventType: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                projectId: string;
                eventTypeName: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Event type deleted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmptyResponse"];
                };
            };
        };
    };
    listAppEventTypes: {
        parameters: {
            query?: {
                /** @description Only event types of this group */
                group?: string;
                /** @description Most entries that the page may hold */
                limit?: number;
                /** @description Number of entries to skip before the page */
                skip?: number;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Event types found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListedEventTypeListResponse"];
                };
            };
        };
    };
    getAppEventType: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
                eventTypeName: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Event type found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EventTypeResponse"];
                };
            };
        };
    };
    importEventTypes: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                projectId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ImportEventTypes"];
            };
        };
        responses: {
            /** @description Event types imported */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportedEventTypesResponse"];
                };
            };
        };
    };
    exportEventTypes: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                projectId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Event types exported */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenApiDocumentResponse"];
                };
            };
        };
    };
    listWebhooks: {
        parameters: {
            query?: {
                /** @description With `false`, secrets are shown as `********`, and the audit log records no read of them */
                secrets?: boolean;
                /** @description Only the webhooks of this app */
                appId?: string;
                /** @description Most entries that the page may hold */
                limit?: number;
                /** @description Number of entries to skip before the page */
                skip?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Webhooks found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookListResponse"];
                };
            };
        };
    };
    createWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateWebhook"];
            };
        };
        responses: {
            /** @description Webhook created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithAuthResponse"];
                };
            };
        };
    };
    getWebhook: {
        parameters: {
            query?: {
                /** @description With `false`, secrets are shown as `********`, and the audit log records no read of them */
                secrets?: boolean;
            };
            header?: never;
            path: {
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Webhook found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithAuthResponse"];
                };
            };
        };
    };
    updateWebhook: {
        parameters: {
            query?: {
                /** @description With `true`, the address has a `uid:`, and the body is that of a creation: what has the uid is updated, and created when nothing has it */
                upsert?: boolean;
            };
            header?: never;
            path: {
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["UpdateWebhook"] | components["schemas"]["CreateWebhook"];
            };
        };
        responses: {
            /** @description Webhook updated */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookResponse"];
                };
            };
            /** @description Webhook created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookResponse"];
                };
            };
        };
    };
    deleteWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Webhook deleted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmptyResponse"];
                };
            };
        };
    };
    rotateWebhookSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RotateSecret"];
            };
        };
        responses: {
            /** @description Secret rotated */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookResponse"];
                };
            };
        };
    };
    testWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["TestWebhook"];
            };
        };
        responses: {
            /** @description Test message accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryResponse"];
                };
            };
        };
    };
    getWebhookHealth: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Health found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookHealthResponse"];
                };
            };
        };
    };
    holdWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["BeginHold"];
            };
        };
        responses: {
            /** @description Webhook on hold */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookResponse"];
                };
            };
        };
    };
    resumeWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["EndHold"];
            };
        };
        responses: {
            /** @description Webhook resumed */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookResponse"];
                };
            };
        };
    };
    holdApp: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["BeginHold"];
            };
        };
        responses: {
            /** @description App on hold */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AppResponse"];
                };
            };
        };
    };
    resumeApp: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["EndHold"];
            };
        };
        responses: {
            /** @description App resumed */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AppResponse"];
                };
            };
        };
    };
    listOrderingKeys: {
        parameters: {
            query?: {
                state?: "blocked" | "waiting";
                /** @description Most entries that the page may hold */
                limit?: number;
                /** @description `nextCursor` of the previous page */
                cursor?: string;
            };
            header?: never;
            path: {
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Ordering keys found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OrderingKeyListResponse"];
                };
            };
        };
    };
    skipOrderingKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SkipOrderingKey"];
            };
        };
        responses: {
            /** @description Ordering key skipped */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SkippedOrderingKeyResponse"];
                };
            };
        };
    };
    startWebhookResend: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResendFailedOfWebhook"];
            };
        };
        responses: {
            /** @description Resend started */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResendResponse"];
                };
            };
        };
    };
    startAppResend: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResendFailed"];
            };
        };
        responses: {
            /** @description Resend started */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResendResponse"];
                };
            };
        };
    };
    estimateWebhookResend: {
        parameters: {
            query: {
                since: string;
            };
            header?: never;
            path: {
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deliveries counted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResendEstimateResponse"];
                };
            };
        };
    };
    estimateAppResend: {
        parameters: {
            query: {
                since: string;
            };
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deliveries counted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResendEstimateResponse"];
                };
            };
        };
    };
    startReplay: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReplayMissing"];
            };
        };
        responses: {
            /** @description Replay started */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResendResponse"];
                };
            };
        };
    };
    estimateReplay: {
        parameters: {
            query: {
                since: string;
                until?: string;
                /** @description Only messages of these types, with commas between them */
                eventTypes?: string;
            };
            header?: never;
            path: {
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Messages counted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReplayEstimateResponse"];
                };
            };
        };
    };
    testFilter: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TestFilter"];
            };
        };
        responses: {
            /** @description Filter tested */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TestedFilterResponse"];
                };
            };
        };
    };
    listMessages: {
        parameters: {
            query?: {
                appId?: string;
                webhookId?: string;
                /** @description Only messages of exactly this type */
                eventType?: string;
                /** @description Only messages with exactly this tag */
                tag?: string;
                /** @description Only messages with this external id */
                externalId?: string;
                status?: components["schemas"]["MessageStatus"];
                /** @description Only messages whose delivery to `webhookId` has this status. `status` is that of the message, which may have deliveries to other webhooks */
                deliveryStatus?: components["schemas"]["DeliveryStatus"];
                /** @description Created at this time or later */
                since?: string;
                /** @description Created at this time or earlier */
                until?: string;
                /** @description Most entries that the page may hold */
                limit?: number;
                /** @description `nextCursor` of the previous page */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Messages found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListedMessageListResponse"];
                };
            };
        };
    };
    createMessage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateMessage"];
            };
        };
        responses: {
            /** @description Message accepted */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedMessageResponse"];
                };
            };
        };
    };
    getMessage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                messageId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Message found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MessageResponse"];
                };
            };
        };
    };
    listMessageDeliveries: {
        parameters: {
            query?: {
                /** @description Most entries that the page may hold */
                limit?: number;
                /** @description `nextCursor` of the previous page */
                cursor?: string;
            };
            header?: never;
            path: {
                messageId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deliveries found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryListResponse"];
                };
            };
        };
    };
    getDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                deliveryId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Delivery found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryResponse"];
                };
            };
        };
    };
    erasePayload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                messageId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description Payload erased */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErasedPayloadResponse"];
                };
            };
        };
    };
    eraseResponses: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                deliveryId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description Responses erased */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErasedResponsesResponse"];
                };
            };
        };
    };
    createMessages: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateMessages"];
            };
        };
        responses: {
            /** @description Messages processed */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedMessagesResponse"];
                };
            };
        };
    };
    listDeliveries: {
        parameters: {
            query?: {
                /** @description Only deliveries with this status, or with one of several with commas between them */
                status?: string;
                /** @description Only pending deliveries that wait without an attempt to come: on `hold`, or for the `time` of their message */
                waiting?: "hold" | "order" | "time";
                /** @description Only deliveries that were cancelled or exhausted for this reason; `all_attempts`: exhausted without a reason, because all of their attempts were made */
                reason?: "webhook_deleted" | "webhook_disabled" | "message_missing" | "cancelled_by_client" | "payload_erased" | "expired_while_waiting" | "expired" | "gone" | "not_retryable" | "aborted" | "all_attempts";
                webhookId?: string;
                /** @description Only deliveries of messages to this app */
                appId?: string;
                /** @description Only deliveries of messages with exactly this event type */
                eventType?: string;
                /** @description Only deliveries of messages that were created at this time or later */
                since?: string;
                /** @description Only deliveries of messages that were created at this time or earlier */
                until?: string;
                /** @description Most entries that the page may hold */
                limit?: number;
                /** @description `nextCursor` of the previous page */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deliveries found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListedDeliveryListResponse"];
                };
            };
        };
    };
    cancelDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                deliveryId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description Delivery cancelled */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryResponse"];
                };
            };
        };
    };
    cancelPendingDeliveries: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhookId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CancelPending"];
            };
        };
        responses: {
            /** @description Deliveries cancelled */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PendingCancelledResponse"];
                };
            };
        };
    };
    estimateCancellation: {
        parameters: {
            query?: {
                /** @description Only deliveries with this status, or with one of several with commas between them */
                status?: string;
                /** @description Only pending deliveries that wait without an attempt to come: on `hold`, or for the `time` of their message */
                waiting?: "hold" | "order" | "time";
                /** @description Only deliveries that were cancelled or exhausted for this reason; `all_attempts`: exhausted without a reason, because all of their attempts were made */
                reason?: "webhook_deleted" | "webhook_disabled" | "message_missing" | "cancelled_by_client" | "payload_erased" | "expired_while_waiting" | "expired" | "gone" | "not_retryable" | "aborted" | "all_attempts";
                webhookId?: string;
                /** @description Only deliveries of messages to this app */
                appId?: string;
                /** @description Only deliveries of messages with exactly this event type */
                eventType?: string;
                /** @description Only deliveries of messages that were created at this time or later */
                since?: string;
                /** @description Only deliveries of messages that were created at this time or earlier */
                until?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deliveries counted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryPlanResponse"];
                };
            };
        };
    };
    estimateResend: {
        parameters: {
            query?: {
                /** @description Only deliveries with this status, or with one of several with commas between them */
                status?: string;
                /** @description Only pending deliveries that wait without an attempt to come: on `hold`, or for the `time` of their message */
                waiting?: "hold" | "order" | "time";
                /** @description Only deliveries that were cancelled or exhausted for this reason; `all_attempts`: exhausted without a reason, because all of their attempts were made */
                reason?: "webhook_deleted" | "webhook_disabled" | "message_missing" | "cancelled_by_client" | "payload_erased" | "expired_while_waiting" | "expired" | "gone" | "not_retryable" | "aborted" | "all_attempts";
                webhookId?: string;
                /** @description Only deliveries of messages to this app */
                appId?: string;
                /** @description Only deliveries of messages with exactly this event type */
                eventType?: string;
                /** @description Only deliveries of messages that were created at this time or later */
                since?: string;
                /** @description Only deliveries of messages that were created at this time or earlier */
                until?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deliveries counted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryPlanResponse"];
                };
            };
        };
    };
    cancelDeliveries: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DeliveryFilter"];
            };
        };
        responses: {
            /** @description Deliveries cancelled */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CancellationResponse"];
                };
            };
        };
    };
    resendDeliveries: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DeliveryFilter"];
            };
        };
        responses: {
            /** @description Resend started */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResendResponse"];
                };
            };
        };
    };
    listCancellations: {
        parameters: {
            query?: {
                /** @description Only those whose filter has this app */
                appId?: string;
                /** @description Only those whose filter has this webhook */
                webhookId?: string;
                /** @description Most entries that the page may hold */
                limit?: number;
                /** @description `nextCursor` of the previous page */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Cancellations found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CancellationListResponse"];
                };
            };
        };
    };
    getCancellation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                cancellationId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Cancellation found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CancellationResponse"];
                };
            };
        };
    };
    resendDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                deliveryId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description Resend started */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryResponse"];
                };
            };
        };
    };
    listResends: {
        parameters: {
            query?: {
                /** @description Only those of the whole app, not of its webhooks and deliveries */
                appId?: string;
                /** @description Only those of the webhook, and of single deliveries to it */
                webhookId?: string;
                /** @description Most entries that the page may hold */
                limit?: number;
                /** @description `nextCursor` of the previous page */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Resends found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResendListResponse"];
                };
            };
        };
    };
    getResend: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                resendId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Resend found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResendResponse"];
                };
            };
        };
    };
    abortResend: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                resendId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description Abort asked */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResendResponse"];
                };
            };
        };
    };
    getSourceIps: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Source addresses found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SourceIpsResponse"];
                };
            };
        };
    };
    listApiKeys: {
        parameters: {
            query?: {
                /** @description Only the keys that this person made */
                createdBy?: string;
                /** @description Most entries that the page may hold */
                limit?: number;
                /** @description Number of entries to skip before the page */
                skip?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description API keys found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKeyListResponse"];
                };
            };
        };
    };
    createApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateApiKey"];
            };
        };
        responses: {
            /** @description API key created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedApiKeyResponse"];
                };
            };
        };
    };
    rotateApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                keyId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RotateApiKey"];
            };
        };
        responses: {
            /** @description API key created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedApiKeyResponse"];
                };
            };
        };
    };
    revokeApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                keyId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description API key revoked */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmptyResponse"];
                };
            };
        };
    };
    getMe: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description API key found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MeResponse"];
                };
            };
        };
    };
    listSigningKeys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Signing keys found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SigningKeyListResponse"];
                };
            };
        };
    };
    rotateSigningKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RotateSigningKey"];
            };
        };
        responses: {
            /** @description Signing key created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SigningKeyResponse"];
                };
            };
        };
    };
    listAuditEvents: {
        parameters: {
            query?: {
                action?: "company.created" | "company.suspended" | "company.resumed" | "company.exported" | "company.deleted" | "api_key.created" | "api_key.rotated" | "api_key.revoked" | "signing_key.rotated" | "dashboard_link.created" | "dashboard.signed_in" | "portal_link.created" | "portal_link.revoked" | "portal.signed_in" | "portal_settings.updated" | "person.signed_in" | "person.signed_out" | "person.invited" | "person.updated" | "person.removed" | "person.sessions_ended" | "invitation.revoked" | "people_settings.updated" | "project.created" | "project.updated" | "project.deleted" | "event_type.created" | "event_type.updated" | "event_type.deleted" | "event_type.imported" | "app.created" | "app.updated" | "app.deleted" | "app.held" | "app.resumed" | "webhook.created" | "webhook.updated" | "webhook.deleted" | "webhook.secret_rotated" | "webhook.secrets_read" | "webhook.tested" | "webhook.pending_cancelled" | "webhook.ordering_key_skipped" | "delivery.cancelled" | "deliveries.cancelled" | "message.payload_erased" | "delivery.responses_erased" | "webhook.held" | "webhook.resumed" | "resend.started" | "resend.aborted" | "replay.started" | "dead_letters.replayed" | "ingest_rejects.replayed" | "encryption_keys.rotated";
                /** @description Id of the API key or of the person that did it, `admin` for operators, or `system` for Posthorn itself */
                actor?: string;
                /** @description Id of what it was done to */
                targetId?: string;
                /** @description Recorded at this time or later */
                since?: string;
                /** @description Recorded at this time or earlier */
                until?: string;
                /** @description Most entries that the page may hold */
                limit?: number;
                /** @description `nextCursor` of the previous page */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Audit events found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditEventListResponse"];
                };
            };
        };
    };
    getStats: {
        parameters: {
            query?: {
                /** @description What one point stands for */
                step?: "minute" | "hour" | "day";
                /** @description Defaults to 60 minutes, 24 hours or 30 days before `until`, by `step` */
                since?: string;
                /** @description Not included. Defaults to the time of the request */
                until?: string;
                /** @description Only attempts to this webhook */
                webhookId?: string;
                /** @description Only attempts to the webhooks of this app. Not together with `webhookId` */
                appId?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Statistics found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StatsResponse"];
                };
            };
        };
    };
    getOverview: {
        parameters: {
            query?: {
                /** @description The time up to now that is counted */
                range?: "1h" | "24h" | "7d" | "30d";
                /** @description Only what concerns this app */
                appId?: string;
                /** @description Only this webhook. Not together with `appId` */
                webhookId?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Overview found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OverviewResponse"];
                };
            };
        };
    };
    listFailures: {
        parameters: {
            query?: {
                /** @description Widened to a whole hour. Defaults to 24 hours ago, and is at most 31 days ago */
                since?: string;
                /** @description Only the webhooks of this app */
                appId?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Failures found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FailureGroupListResponse"];
                };
            };
        };
    };
    findById: {
        parameters: {
            query: {
                /** @description Of a project, app, webhook, message, delivery, attempt, resend, cancellation or API key */
                id: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FoundResponse"];
                };
            };
        };
    };
    listCircuits: {
        parameters: {
            query?: {
                /** @description Only the webhooks of this app */
                appId?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Circuits found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenCircuitListResponse"];
                };
            };
        };
    };
    findApps: {
        parameters: {
            query?: {
                /** @description Part of the name, in any case, or the whole id or uid */
                text?: string;
                /** @description Only these, at most 100, with commas between them */
                ids?: string;
                /** @description Most entries that the page may hold */
                limit?: number;
                /** @description `nextCursor` of the previous page */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Apps found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FoundAppListResponse"];
                };
            };
        };
    };
    getAppCounts: {
        parameters: {
            query: {
                /** @description Only these, at most 20, with commas between them */
                ids: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Apps counted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AppCountsListResponse"];
                };
            };
        };
    };
    findWebhooks: {
        parameters: {
            query?: {
                /** @description Part of the URL, the name or an event type, in any case, or the whole id or uid */
                text?: string;
                /** @description Only these, at most 100, with commas between them */
                ids?: string;
                /** @description Only the webhooks of this app */
                appId?: string;
                /** @description Only the webhooks of this project and its apps */
                projectId?: string;
                /** @description Only webhooks that select it by name, by a wildcard or by selecting all */
                eventType?: string;
                /** @description Most entries that the page may hold */
                limit?: number;
                /** @description `nextCursor` of the previous page */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Webhooks found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FoundWebhookListResponse"];
                };
            };
        };
    };
    createPortalLink: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                appId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreatePortalLink"];
            };
        };
        responses: {
            /** @description Portal link created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PortalLinkResponse"];
                };
            };
        };
    };
    listPortalLinks: {
        parameters: {
            query?: {
                /** @description Only the links to the portal of this app */
                appId?: string;
                /** @description Most entries that the page may hold */
                limit?: number;
                /** @description Number of entries to skip before the page */
                skip?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Portal links found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListedPortalLinkListResponse"];
                };
            };
        };
    };
    revokePortalLink: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                linkId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Portal link revoked */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmptyResponse"];
                };
            };
        };
    };
    getPortalSettings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Portal settings found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PortalSettingsResponse"];
                };
            };
        };
    };
    updatePortalSettings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["UpdatePortalSettings"];
            };
        };
        responses: {
            /** @description Portal settings updated */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PortalSettingsResponse"];
                };
            };
        };
    };
    listPeople: {
        parameters: {
            query?: {
                /** @description Most entries that the page may hold */
                limit?: number;
                /** @description Number of entries to skip before the page */
                skip?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description People found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PersonListResponse"];
                };
            };
        };
    };
    getPerson: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                personId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Person found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PersonWithSessionsResponse"];
                };
            };
        };
    };
    updatePerson: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                personId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["UpdatePerson"];
            };
        };
        responses: {
            /** @description Person updated */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PersonResponse"];
                };
            };
        };
    };
    deletePerson: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                personId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Person removed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmptyResponse"];
                };
            };
        };
    };
    endPersonSessions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                personId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["EndPersonSessions"];
            };
        };
        responses: {
            /** @description Sessions ended */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EndedSessionsResponse"];
                };
            };
        };
    };
    getPeopleSettings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description People settings found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PeopleSettingsResponse"];
                };
            };
        };
    };
    updatePeopleSettings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["UpdatePeopleSettings"];
            };
        };
        responses: {
            /** @description People settings updated */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PeopleSettingsResponse"];
                };
            };
        };
    };
    listInvitations: {
        parameters: {
            query?: {
                /** @description Most entries that the page may hold */
                limit?: number;
                /** @description Number of entries to skip before the page */
                skip?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Invitations found */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InvitationListResponse"];
                };
            };
        };
    };
    createInvitation: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateInvitation"];
            };
        };
        responses: {
            /** @description Invitation created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedInvitationResponse"];
                };
            };
        };
    };
    revokeInvitation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                invitationId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Invitation revoked */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmptyResponse"];
                };
            };
        };
    };
}

/** Why the API refuses a request (docs/decisions/0004-api-errors.md). */
export type ErrorCode =
  /** 400: the request is not valid HTTP, or has not exactly one valid `Host`. */
  | 'malformed_request'
  /** 400: fields, headers or query parameters are wrong; `errors` lists every problem. */
  | 'invalid_request'
  /** 400: the request has the header `webhook-id`: it is a delivery of a webhook that points to this API. */
  | 'delivery_refused'
  /** 401: the API key is missing or not valid. */
  | 'unauthorized'
  /** 403: `companyid` is not the company of the API key. */
  | 'company_mismatch'
  /** 403: the company of the API key is suspended. */
  | 'company_suspended'
  /** 403: the API key does not have the scope of the route, or may be used for one app only. */
  | 'insufficient_scope'
  /** 408: the request did not arrive in time. */
  | 'request_timeout'
  /** 417: `Expect` asks for something other than `100-continue`. */
  | 'expectation_failed'
  /** 429: the company or the client address sent too many requests. */
  | 'rate_limited'
  /** 429: the client address sent too many wrong API keys; a valid key that is in use still works. */
  | 'too_many_wrong_keys'
  /** 431: the headers are more than 100, or have more than 16,384 bytes. */
  | 'headers_too_large'
  /** 500: a fault of the service; report the `requestId`. */
  | 'internal_error'
  /** 501: `Transfer-Encoding` is something other than `chunked`, or the method is CONNECT. */
  | 'not_implemented'
  /** 503: the request cannot be stored now; send it again. */
  | 'unavailable'
  /** 400: the body is not UTF-8, is not a JSON object, repeats a key, or is nested deeper than 64 levels. */
  | 'invalid_json'
  /** 400: the body ended before its announced length. */
  | 'incomplete_body'
  /** 400: the body comes in more than 1,024 chunks, with fewer than four bytes in the mean. */
  | 'chunks_too_small'
  /** 413: the body has more than 262,144 bytes, or more than 1,048,576 of a batch. */
  | 'body_too_large'
  /** 415: the body is not JSON, or is compressed. */
  | 'unsupported_media_type'
  /** 404: the address does not exist. */
  | 'route_not_found'
  /** 405: the address does not support the method; `Allow` lists those that it does. */
  | 'method_not_allowed'
  /** 404: it does not exist, or belongs to another company. */
  | 'not_found'
  /** 409: the delivery has no final state yet. */
  | 'delivery_pending'
  /** 409: the delivery has ended, so that nothing of it can be cancelled. */
  | 'delivery_final'
  /** 409: the delivery is not the exhausted one at which its ordering key is blocked. */
  | 'not_blocked'
  /** 409: the company, project, app, webhook or message would have more than it may; the message names the limit and its setting. */
  | 'quota_exceeded'
  /** 409: another project, app or webhook of the company has the `uid`; for an upsert, one with another owner or environment. */
  | 'uid_taken'
  /** 409: the catalogue of the project has an event type of this name. */
  | 'event_type_exists'
  /** 409: the role of the person comes from their groups alone. */
  | 'role_by_group'
  /** 409: a link made the API key, which nobody knows. */
  | 'key_of_link'
  /** 409: a resend of it is running. */
  | 'resend_running'
  /** 409: 100 cancellations by filter of the company run, or have ended within the last minute. */
  | 'too_many_cancellations'
  /** 409: the webhook of the delivery was deleted. */
  | 'webhook_deleted'
  /** 409: the webhook is disabled. */
  | 'webhook_disabled'
  /** 409: the payload of the message was erased, by a request or because its app stores payloads until they are delivered. */
  | 'payload_erased'
  /** 409: the first request with this key is still running. */
  | 'idempotency_key_running'
  /** 422: the project takes event types of its catalogue only, and the message has none of them. */
  | 'event_type_unknown'
  /** 422: the payload does not meet the schema of its event type; `errors` lists up to 20 problems. */
  | 'payload_invalid'
  /** 422: the key was used with another body, or with another id in the address. */
  | 'idempotency_key_reused';

import { exampleId } from '../../http/responses/fields.ts';
import type { JsonSchema } from './json-schemas.ts';

const SIGNATURE = '9b1c1e0d5f3a4c7d8e2f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5';

const DESCRIPTION = `The request that an endpoint receives. Its body is the \`payload\` of the message, byte for byte.

Every delivery has the headers of [Standard Webhooks](https://www.standardwebhooks.com), the webhook's \`customHeaders\`, and one header of authentication:

| \`authMethod\` | header |
| --- | --- |
| \`hmac\` | \`X-Service-Signature\`, or the header that \`hmacHeader\` names: the hex HMAC SHA-256 of the body. The key is the text of \`hmacSecret\`, which defaults to the \`secret\` of the webhook |
| \`hmac\` with \`signatureAlgorithm: ed25519\` | none: \`webhook-signature\` has Ed25519 signatures instead, which the public keys at \`GET /.well-known/webhooks-keys/{companyId}\` verify |
| \`basic\` | \`Authorization: Basic …\`: the base64 of user name, colon and password |
| \`apiKey\` | the header that \`apiKeyHeader\` names, with the value of \`apiKey\` |
| \`oauth2\` | \`Authorization: Bearer …\`: an access token, which Posthorn requests at \`oauth2TokenUrl\` with the client credentials grant (RFC 6749, section 4.4), caches, and requests again before it expires or after a 401 |

The first attempt is made at once. Further attempts follow 5 seconds, 5 minutes, 30 minutes, 2 hours, 5 hours and 10 hours after the end of the failed attempt before. A delivery may arrive twice, with the same \`webhook-id\`.`;

function header(name: string, description: string, example: string, isAlways = true): JsonSchema {
  const schema = { type: 'string', examples: [example] };
  return { in: 'header', name, required: isAlways, description, schema };
}

const HEADERS = [
  header('webhook-id', 'Id of the message, the same in every attempt', exampleId('msg')),
  header('webhook-timestamp', 'Time of this attempt, in seconds since 1970', '1769851800'),
  header(
    'webhook-signature',
    '`v1,` and the base64 HMAC SHA-256 of `{webhook-id}.{webhook-timestamp}.{body}`. The key is the part of the `secret` after `whsec_`, decoded from base64. During the grace period of a rotation there are two signatures, separated by a space. With `signatureAlgorithm: ed25519` it is `v1a,` and the base64 Ed25519 signature of the same text',
    'v1,Ce8pWNEdXUsSJJN4nXg1cWN0PN0Yd0y1Zz8Y1w9V2dM=',
  ),
  header('User-Agent', 'Posthorn and its version', 'Posthorn/0.1.0'),
  header(
    'X-Service-Signature',
    'With `hmac` and `hmac-sha256`. `hmacHeader` sets the name',
    SIGNATURE,
    false,
  ),
  header(
    'Authorization',
    'With `basic`; with `oauth2`, `Bearer` and the token',
    'Basic cG9zdGhvcm46c2VjcmV0',
    false,
  ),
  header(
    'X-Endpoint-Key',
    'With `apiKey`. `apiKeyHeader` sets the name',
    'a long random text',
    false,
  ),
];

/** The request that Posthorn sends (OpenAPI 3.1, `webhooks`). */
export const DELIVERY_REQUEST: JsonSchema = {
  post: {
    operationId: 'delivery',
    summary: 'A delivery to your endpoint',
    description: DESCRIPTION,
    security: [],
    parameters: HEADERS,
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: { type: 'object' },
          example: { order: 17, total: '12.50' },
        },
      },
    },
    responses: {
      '2XX': { description: 'The delivery succeeded. Only the status counts, not the body.' },
      default: {
        description:
          'The attempt failed and is retried on the schedule, as after no response within 15 seconds. Redirects are not followed.',
      },
    },
  },
};

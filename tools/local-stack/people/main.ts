import { env } from 'node:process';
import { waitForStopRequest } from '../waiting.ts';
import { startIssuer } from './issuer.ts';
import { LOCAL_PEOPLE } from './people.ts';

// The program of `npm start -- --people`, which passes these settings.
const { ISSUER_PORT = '', OIDC_CLIENT_ID = '', OIDC_CLIENT_SECRET = '', PUBLIC_URL = '' } = env;

const issuer = await startIssuer({
  port: Number(ISSUER_PORT),
  people: LOCAL_PEOPLE,
  client: { id: OIDC_CLIENT_ID, secret: OIDC_CLIENT_SECRET },
  publicUrl: PUBLIC_URL,
});
await waitForStopRequest();
await issuer.close();

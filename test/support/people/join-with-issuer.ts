import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { createApiClient } from '../api/api-client.ts';
import type { OwnCompany, RunningService } from '../process/posthorn.ts';
import { joinShared } from '../process/shared-posthorn.ts';
import { leaksIn } from './leaks.ts';
import { createPersonBrowser, type PersonBrowser } from './person-browser.ts';
import { CLIENT_ID, type ScriptedIssuer, startScriptedIssuer } from './scripted-issuer.ts';

/** A company of the shared Posthorn, with gateways of its own at which people sign in. */
export interface CompanyWithIssuer extends OwnCompany {
  issuer: ScriptedIssuer;
  gateway: RunningService;
  browser: () => PersonBrowser;
  /** Starts one more gateway with the same settings and these. */
  startAnother: (settings?: Record<string, string>) => Promise<GatewayWithIssuer>;
  /** The secrets, codes, tokens and claims that its gateways have logged, at every level. */
  leaks: () => string[];
}

export interface GatewayWithIssuer {
  baseUrl: string;
  gateway: RunningService;
  browser: () => PersonBrowser;
}

export async function joinWithIssuer(
  prefix: string,
  settings: Record<string, string> = {},
): Promise<CompanyWithIssuer> {
  const shared = await joinShared('contract');
  const issuer = await startScriptedIssuer();
  const gateways: RunningService[] = [];
  const startAnother = async (others: Record<string, string> = {}): Promise<GatewayWithIssuer> => {
    const [port = 0] = await freePorts(1);
    const baseUrl = `http://127.0.0.1:${port}`;
    const gateway = await shared.start('gateway', {
      REDIS_PREFIX: prefix,
      OIDC_ISSUER: issuer.url,
      OIDC_CLIENT_ID: CLIENT_ID,
      PUBLIC_URL: baseUrl,
      LOG_LEVEL: 'trace',
      PORT: String(port),
      ...settings,
      ...others,
    });
    gateways.push(gateway);
    return { baseUrl, gateway, browser: () => createPersonBrowser(baseUrl, issuer) };
  };
  const first = await startAnother();
  return {
    ...shared,
    ...first,
    api: createApiClient(first.baseUrl, shared.apiKey),
    issuer,
    startAnother,
    leaks: () =>
      gateways.flatMap((gateway) =>
        leaksIn(gateway.output(), [shared.apiKey, ...issuer.secrets, ...issuer.claims]),
      ),
    async stop() {
      await shared.stop();
      await issuer.close();
    },
  };
}

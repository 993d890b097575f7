import { describe, expect, it } from '@jest/globals';
import {
  contains,
  parseCidr,
  parseIp,
  refusalOfAddress,
  STRICT_EGRESS,
} from '@posthorn/domain/egress.ts';
import {
  containerOf,
  find,
  readBase,
  readComponent,
  workloads,
  type Container,
  type Manifest,
} from '../../k8s/read-manifests.ts';
import { REFUSED } from '../support/receivers/refused-addresses.ts';

interface IpBlock {
  cidr: string;
  except: string[];
}

interface Peer {
  ipBlock?: IpBlock;
  namespaceSelector?: { matchLabels: Record<string, string> };
}

interface Rule {
  from?: Peer[];
  to?: Peer[];
  ports: { protocol: string; port: number | string; endPort?: number }[];
}

interface PolicySpec {
  podSelector: { matchLabels: Record<string, string> };
  policyTypes: string[];
  ingress?: Rule[];
  egress?: Rule[];
}

const manifests = readBase();
const specOf = ({ spec }: Manifest): PolicySpec => spec as unknown as PolicySpec;
const policies = manifests.filter(({ kind }) => kind === 'NetworkPolicy');

function policiesOf(workload: string): PolicySpec[] {
  const { labels } = find(manifests, workload).spec.template.metadata;
  return policies
    .map(specOf)
    .filter(({ podSelector }) =>
      Object.entries(podSelector.matchLabels).every(([name, value]) => labels[name] === value),
    );
}

const SERVICES = ['gateway', 'dispatcher', 'retry', 'ingest'];
/** The processes that make spans may reach the collector. */
const TRACED = new Set(['gateway', 'dispatcher', 'ingest']);
const BY_HAND = ['check-topics', 'apply-topics', 'add-partitions'];
const NAMES = [...SERVICES, 'create-topics', 'create-indexes', ...BY_HAND];

describe('the NetworkPolicies of k8s/base [security]', () => {
  it.each(NAMES)('deny what is not allowed, in both directions, to pods of %s', (name) => {
    const denying = policiesOf(name).filter(({ ingress, egress }) => !ingress && !egress);
    expect(denying.map(({ policyTypes }) => policyTypes)).toEqual([['Ingress', 'Egress']]);
    expect(workloads(manifests)).toHaveLength(NAMES.length);
  });

  it.each([
    ['gateway', ['ops', 'http']],
    ['dispatcher', ['ops']],
    ['retry', ['ops']],
    ['ingest', ['ops']],
    ['create-topics', ['ops']],
  ])('let only labelled namespaces in, and to these ports of %s', (name, expected) => {
    const rules = policiesOf(name).flatMap(({ ingress = [] }) => ingress);
    expect(rules.flatMap(({ ports }) => ports.map(({ port }) => port)).sort()).toEqual(
      [...expected].sort(),
    );
    const labels = rules.flatMap(({ from = [] }) =>
      from.map(({ namespaceSelector }) => namespaceSelector?.matchLabels),
    );
    for (const each of labels) {
      expect(Object.keys(each ?? {})).toEqual([expect.stringMatching(/^posthorn\//)]);
    }
  });

  it.each(SERVICES)('name ports that pods of %s have', (name) => {
    const { ports = [] }: Container = containerOf(find(manifests, name));
    const rules = policiesOf(name).flatMap(({ ingress = [] }) => ingress);
    for (const { port } of rules.flatMap((rule) => rule.ports)) {
      expect(ports.map((each) => each.name)).toContain(port);
    }
  });

  it('let only the dispatcher out of the cluster', () => {
    const outside = NAMES.filter((name) =>
      policiesOf(name).some(({ egress = [] }) =>
        egress.some(({ to = [] }) => to.some(({ ipBlock }) => ipBlock)),
      ),
    );
    expect(outside).toEqual(['dispatcher']);
  });

  it('let every pod reach DNS and the ports of the stores and of the collector, in namespaces that are named', () => {
    for (const name of NAMES) {
      const rules = policiesOf(name).flatMap(({ egress = [] }) => egress);
      const inside = rules.filter(({ to = [] }) => to.every((peer) => peer.namespaceSelector));
      const ports = inside.flatMap((rule) => rule.ports.map(({ port }) => port));
      const stores = [53, 27_017, 9_092, 9_093, 6_379, 26_379];
      expect(new Set(ports)).toEqual(new Set([...stores, ...(TRACED.has(name) ? [4_318] : [])]));
    }
  });
});

describe('the policy of k8s/components/canary [security]', () => {
  const canary = readComponent('canary');
  const spec = specOf(find(canary, 'canary', 'NetworkPolicy'));
  const { labels } = find(manifests, 'retry').spec.template.metadata;

  it('is for retry pods, and lets labelled namespaces in to the port of the canary', () => {
    expect(labels).toMatchObject(spec.podSelector.matchLabels);
    expect(spec.ingress).toEqual([
      {
        from: [{ namespaceSelector: { matchLabels: { 'posthorn/ingress': 'true' } } }],
        ports: [{ protocol: 'TCP', port: 'canary' }],
      },
    ]);
  });

  it('lets them out to one address and to labelled namespaces', () => {
    const peers = (spec.egress ?? []).flatMap(({ to = [] }) => to);
    expect(peers.map(({ ipBlock }) => ipBlock?.cidr.split('/')[1])).toEqual(['32', undefined]);
    expect(peers[1]?.namespaceSelector?.matchLabels).toEqual({ 'posthorn/ingress': 'true' });
  });

  it('stands beside a Service that leads to the same pods and port', () => {
    const service = find(canary, 'canary', 'Service');
    expect(service.spec).toMatchObject({
      selector: spec.podSelector.matchLabels,
      ports: [{ targetPort: 'canary' }],
    });
    const { ports = [] }: Container = containerOf(find(manifests, 'retry'));
    expect(ports.map(({ name }) => name)).toContain('canary');
  });
});

describe.each([
  ['operator-webhook', 'retry'],
  ['egress-proxy', 'dispatcher'],
  ['oidc', 'gateway'],
])('the policy of k8s/components/%s [security]', (component, process) => {
  const spec = specOf(find(readComponent(component), component, 'NetworkPolicy'));

  it('lets this process alone out, to one address and to namespaces with its label', () => {
    const { labels } = find(manifests, process).spec.template.metadata;
    expect(labels).toMatchObject(spec.podSelector.matchLabels);
    expect(spec.podSelector.matchLabels['app.kubernetes.io/component']).toBe(process);
    expect(spec.policyTypes).toEqual(['Egress']);
    const peers = (spec.egress ?? []).flatMap(({ to = [] }) => to);
    expect(peers.map(({ ipBlock }) => ipBlock?.cidr.split('/')[1])).toEqual(['32', undefined]);
    expect(peers[1]?.namespaceSelector?.matchLabels).toEqual({ [`posthorn/${component}`]: 'true' });
  });
});

describe('the way out of the dispatcher [security]', () => {
  const blocks = policiesOf('dispatcher')
    .flatMap(({ egress = [] }) => egress.flatMap(({ to = [] }) => to))
    .flatMap(({ ipBlock }) => ipBlock ?? []);

  function isIn(range: string, text: string): boolean {
    const [cidr, address] = [parseCidr(range), parseIp(text)];
    if (!cidr || !address) throw new Error(`${range} or ${text} is no address`);
    return contains(cidr, address);
  }

  const isOpen = (address: string): boolean =>
    blocks.some(
      ({ cidr, except }) => isIn(cidr, address) && !except.some((each) => isIn(each, address)),
    );

  it.each(REFUSED)('does not lead to %s, which the egress rules refuse', (address) => {
    expect(isOpen(address)).toBe(false);
  });

  it.each(['8.8.8.8', '1.1.1.1', '172.32.0.1', '2606:4700::1111', '2a00:1450::1'])(
    'leads to %s, which is public',
    (address) => {
      expect(isOpen(address)).toBe(true);
    },
  );

  it('leaves out no range that deliveries may go to', () => {
    const first = blocks.flatMap(({ except }) => except.map((each) => each.split('/')[0] ?? ''));
    expect(first.filter((each) => refusalOfAddress(each, STRICT_EGRESS) === null)).toEqual([]);
  });
});

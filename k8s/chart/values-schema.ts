import { compactJson } from '../../deploy/compact-json.ts';
import { readBase } from '../read-manifests.ts';

type Schema = Readonly<Record<string, unknown>>;

const text: Schema = { type: 'string' };
const name: Schema = { type: 'string', minLength: 1 };
const flag: Schema = { type: 'boolean' };
const quantity: Schema = {
  type: 'string',
  pattern: '^[0-9]+(\\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$',
};
const resources = object({
  requests: { ...object({ cpu: quantity, memory: quantity }), required: ['memory'] },
  limits: object({ cpu: quantity, memory: quantity }),
});
const service = object({ replicas: { type: ['integer', 'null'], minimum: 0 }, resources });
/** That they divide the partitions is checked by the template. */
const scaled = object({
  minReplicas: { type: 'integer', minimum: 1 },
  maxReplicas: { type: 'integer', minimum: 1 },
});
/** The chart calculates with it. */
const wholeNumber: Schema = { type: 'string', pattern: '^[1-9][0-9]{0,2}$|^1000$' };
const list = (items: Schema): Schema => ({ type: 'array', items });
/** An empty list of peers would allow every address. */
const addresses: Schema = { ...list(name), minItems: 1 };
const anything: Schema = { type: 'object' };

/** Returns the schema of the values: a name that it does not know, or a value of another type, is refused by Helm. */
export function valuesSchemaText(): string {
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Values of the Posthorn chart',
    ...object({
      image: object({
        repository: name,
        tag: text,
        digest: { type: 'string', pattern: '^(sha256:[0-9a-f]{64})?$' },
      }),
      secrets: object({ settings: name, tls: name }),
      pods: object({
        imagePullSecrets: list(object({ name })),
        nodeSelector: { type: 'object', additionalProperties: text },
        tolerations: list(anything),
        priorityClassName: text,
      }),
      gateway: service,
      dispatcher: service,
      retry: service,
      setup: object({ resources }),
      networkPolicies: object({ enabled: flag }),
      autoscaling: object({
        enabled: flag,
        prometheusAddress: { type: 'string', pattern: '^https?://' },
        gateway: object({
          minReplicas: { type: 'integer', minimum: 1 },
          maxReplicas: { type: 'integer', minimum: 1 },
          cpu: quantity,
        }),
        dispatcher: scaled,
        retry: scaled,
      }),
      monitoring: object({ enabled: flag }),
      httpRoute: object({ enabled: flag, hostnames: list(name), parentRefs: list(anything) }),
      ingress: object({ enabled: flag, className: name, host: name, tlsSecret: name }),
      canary: object({ enabled: flag, gatewayCidrs: addresses }),
      operatorWebhook: object({ enabled: flag, cidrs: addresses }),
      egressProxy: object({ enabled: flag, cidrs: addresses }),
      strimzi: object({ enabled: flag, brokerDisk: quantity, brokerMemory: quantity }),
      settings: object(settings()),
      // Helm gives these to every chart.
      global: anything,
    }),
  };
  return compactJson(schema);
}

function object(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: 'object', properties, additionalProperties: false };
}

/** What the exporter of traces reads itself (docs/tracing.md). None has a default, so the base does not set them. */
const OF_EXPORTER = [
  'OTEL_EXPORTER_OTLP_CERTIFICATE',
  'OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE',
  'OTEL_EXPORTER_OTLP_CLIENT_KEY',
  'OTEL_EXPORTER_OTLP_COMPRESSION',
  'OTEL_EXPORTER_OTLP_TIMEOUT',
  'OTEL_RESOURCE_ATTRIBUTES',
  'OTEL_SERVICE_NAME',
];

function settings(): Record<string, Schema> {
  const maps = readBase().filter(({ kind }) => kind === 'ConfigMap');
  return Object.fromEntries(
    maps.map(({ metadata, data = {} }) => {
      const group = metadata.name.replace(/^posthorn-/, '');
      const names = [...Object.keys(data), ...(group === 'tracing' ? OF_EXPORTER : [])];
      const known = names.map(
        (setting) => [setting, setting === 'TOPIC_PARTITIONS' ? wholeNumber : text] as const,
      );
      return [group, object(Object.fromEntries(known))];
    }),
  );
}

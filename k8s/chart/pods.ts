import type { Substitution } from './substitute.ts';

/** Labels of objects and of pods, not those that select pods; `labels` of k8s/base/kustomization.yaml. */
export const PART_OF: Substitution = {
  from: /(?<=[^a-zA-Z])labels:\n( +)app.kubernetes.io\/name: posthorn\n/,
  to: 'labels:\n<1>app.kubernetes.io/name: posthorn\n<1>app.kubernetes.io/part-of: posthorn\n',
};

export const SECRET: Substitution = {
  from: 'secretKeyRef: { name: posthorn, key:',
  to: 'secretKeyRef: { name: {{ .Values.secrets.settings }}, key:',
};

/** What every pod has: image, settings, Secrets, and where it may run. `deeper` is 4 in a CronJob, whose pods stand that far in. */
export function pods(deeper = 0): Substitution[] {
  const spec = ' '.repeat(6 + deeper);
  const settings = deeper === 0 ? '' : ` | indent ${deeper}`;
  return [
    {
      from: `${spec}    image: posthorn\n`,
      to: `${spec}    image: {{ include "posthorn.image" . }}\n`,
    },
    {
      from: /configMapRef: \{ name: posthorn-([a-z]+) \}/,
      to: 'configMapRef: { name: {{ include "posthorn.configMapName" (list . "<1>") }} }',
    },
    {
      from: 'secret: { secretName: posthorn-tls, optional: true }\n',
      to: 'secret: { secretName: {{ .Values.secrets.tls }}, optional: true }\n',
    },
    {
      from: `${spec}automountServiceAccountToken: false\n`,
      to: `${spec}automountServiceAccountToken: false\n{{- include "posthorn.podSettings" .${settings} }}\n`,
    },
  ];
}

/** The login to Kafka from the Secret, or the one that Strimzi made; with its CA. */
export function kafkaLogin(user: string, deeper = 0): Substitution[] {
  const [volume, mount] = [8 + deeper, 12 + deeper];
  const spec = ' '.repeat(volume - 2);
  const container = ' '.repeat(mount - 2);
  const entry = `${container}  `;
  return [
    {
      from: new RegExp(
        `${entry}- name: KAFKA_SASL_USERNAME\n.*\n.*\n${entry}- name: KAFKA_SASL_PASSWORD\n.*\n.*\n`,
      ),
      to: `${entry}{{- include "posthorn.kafkaLogin" (list . "${user}") | nindent ${mount} }}\n`,
    },
    {
      from: `${container}volumeMounts:\n`,
      to: `${container}volumeMounts:\n${entry}{{- include "posthorn.kafkaCaMount" . | nindent ${mount} }}\n`,
    },
    {
      from: `${spec}volumes:\n`,
      to: `${spec}volumes:\n${spec}  {{- include "posthorn.kafkaCaVolume" . | nindent ${volume} }}\n`,
    },
  ];
}

export function resourcesOf(value: string, deeper = 0): Substitution {
  const container = ' '.repeat(10 + deeper);
  return {
    from: new RegExp(`${container}resources:\n(?: +#.*\n)* +requests: .*\n +limits: .*\n`),
    to: `${container}resources: {{ toJson .Values.${value}.resources }}\n`,
  };
}

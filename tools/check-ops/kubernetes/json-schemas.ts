/** A node of an OpenAPI schema: of Kubernetes' own types, or of a custom resource definition. */
export type Node = Record<string, unknown>;

export interface Crd {
  spec: {
    group: string;
    names: { kind: string };
    versions: { name: string; served: boolean; schema: { openAPIV3Schema: Node } }[];
  };
}

export interface Swagger {
  definitions: Record<string, Node>;
}

interface GroupVersionKind {
  group: string;
  version: string;
  kind: string;
}

/** Where kubeconform finds the schema of a kind, below the folder of schemas. */
export const SCHEMA_LOCATION = '{{.Group}}/{{.ResourceAPIVersion}}/{{.ResourceKind}}.json';

/** The same path. The core group has no name; kubeconform takes its version for one. */
function schemaFile({ group, version, kind }: GroupVersionKind): string {
  return `${group === '' ? version : group}/${version}/${kind.toLowerCase()}.json`;
}

/** Returns one JSON schema for each kind of Kubernetes, by file. Each refuses fields that the API does not know. */
export function schemasOfKubernetes({ definitions }: Swagger): Map<string, Node> {
  const strict = Object.fromEntries(
    Object.entries(definitions).map(([name, node]) => [name, closed(node) as Node]),
  );
  const files = new Map<string, Node>();
  for (const [name, node] of Object.entries(definitions)) {
    const kinds = (node['x-kubernetes-group-version-kind'] ?? []) as GroupVersionKind[];
    for (const each of kinds) {
      const definitionsOf = reachable(name, strict);
      files.set(schemaFile(each), {
        $ref: `#/definitions/${name}`,
        definitions: definitionsOf,
      });
    }
  }
  return files;
}

/** Returns one JSON schema for each served version of a custom resource, by file. */
export function schemasOfCrd({ spec: { group, names, versions } }: Crd): Map<string, Node> {
  const served = versions.filter((version) => version.served);
  return new Map(
    served.map(({ name: version, schema }) => [
      schemaFile({ group, version, kind: names.kind }),
      closed(schema.openAPIV3Schema) as Node,
    ]),
  );
}

/** The definitions that a definition refers to, itself too. */
function reachable(name: string, definitions: Record<string, Node>): Record<string, Node> {
  const found: Record<string, Node> = {};
  const visit = (each: string): void => {
    const node = definitions[each];
    if (node === undefined || each in found) return;
    found[each] = node;
    for (const [, next = ''] of JSON.stringify(node).matchAll(/"#\/definitions\/([^"]+)"/g)) {
      visit(next);
    }
  };
  visit(name);
  return found;
}

/**
 * Refuses unknown fields, as `kubectl apply` with strict validation does, and admits the API server's two kinds of
 * numbers.
 */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const node = value as Node;
  const isEither = node.format === 'int-or-string' || node['x-kubernetes-int-or-string'] === true;
  if (isEither) return { anyOf: [{ type: 'integer' }, { type: 'string' }] };
  const entries = Object.entries(node).map(([key, each]) => [key, closed(each)] as const);
  const result: Node = Object.fromEntries(entries);
  const isOpen =
    !isSchemaWithFields(node) ||
    'additionalProperties' in node ||
    node['x-kubernetes-preserve-unknown-fields'] === true;
  return isOpen ? result : { ...result, additionalProperties: false };
}

function isSchemaWithFields(node: Node): boolean {
  return node.type === 'object' && typeof node.properties === 'object';
}

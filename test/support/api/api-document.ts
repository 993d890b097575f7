import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

export type JsonSchema = Record<string, unknown>;

interface Media {
  schema: JsonSchema;
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}

interface Answer {
  description: string;
  headers?: Record<string, JsonSchema>;
  content?: Record<string, Media>;
}

export interface Parameter {
  in: 'path' | 'query' | 'header';
  name: string;
  required?: boolean;
  schema: JsonSchema;
}

interface OperationObject {
  operationId: string;
  parameters?: (Parameter | JsonSchema)[];
  requestBody?: { required: boolean; content: Record<string, Media> };
  security?: Record<string, string[]>[];
  responses: Record<string, Answer | JsonSchema>;
}

/** The parts of an OpenAPI 3.1 document that tests read. */
export interface ApiDocument {
  openapi: string;
  info: { title: string; version: string; description: string };
  tags: { name: string }[];
  paths: Record<string, Record<string, OperationObject & { tags: string[] }>>;
  webhooks: Record<string, Record<string, OperationObject>>;
  components: Record<string, Record<string, JsonSchema>> & { schemas: Record<string, JsonSchema> };
}

/** One operation with everything that it refers to. */
export interface Operation {
  id: string;
  /** Upper case, as in a request. */
  method: string;
  /** With the parameters in braces. */
  path: string;
  /** It needs no API key. */
  isForEveryone: boolean;
  parameters: Parameter[];
  /** The header `companyid` is required with `x-api-key` (docs/contract.md C4.3). */
  needsCompanyId: boolean;
  body: { isRequired: boolean; schema: JsonSchema; examples: unknown[] } | null;
  answers: ReadonlyMap<number, DocumentedAnswer>;
}

export interface DocumentedAnswer {
  schema: JsonSchema;
  examples: unknown[];
  headers: string[];
}

export function operationsOf(document: ApiDocument): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      id: operation.operationId,
      method: method.toUpperCase(),
      path,
      isForEveryone: operation.security?.some((each) => Object.keys(each).length === 0) ?? false,
      parameters: (operation.parameters ?? []).map((each) => resolved<Parameter>(document, each)),
      needsCompanyId: needsCompanyId(operation),
      body: bodyOf(operation),
      answers: answersOf(document, operation),
    })),
  );
}

/** Only its words can express it: OpenAPI has no parameter that one way to authenticate requires. */
function needsCompanyId({ parameters = [] }: OperationObject): boolean {
  return parameters.some(
    (each) => '$ref' in each && each.$ref === '#/components/parameters/CompanyIdWithKey',
  );
}

function bodyOf({ requestBody }: OperationObject): Operation['body'] {
  const media = requestBody?.content['application/json'];
  if (!media) return null;
  return {
    isRequired: requestBody.required,
    schema: media.schema,
    examples: examplesOf(media),
  };
}

function answersOf(
  document: ApiDocument,
  { responses }: OperationObject,
): Map<number, DocumentedAnswer> {
  return new Map(
    Object.entries(responses).map(([status, each]) => {
      const { headers = {}, content = {} } = resolved<Answer>(document, each);
      const media = content['application/json'] ?? { schema: {} };
      const { schema } = media;
      return [
        Number(status),
        { schema, examples: examplesOf(media), headers: Object.keys(headers) },
      ];
    }),
  );
}

function examplesOf({ example, examples = {} }: Media): unknown[] {
  const values = Object.values(examples).map(({ value }) => value);
  return example === undefined ? values : [example, ...values];
}

// The caller knows what stands at the place in the document.
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function resolved<Found>(document: ApiDocument, value: object): Found {
  if (!('$ref' in value)) return value as Found;
  const [, ...steps] = String(value.$ref).split('/');
  let found: unknown = document;
  for (const step of steps) found = (found as Record<string, unknown> | undefined)?.[step];
  if (found === undefined) throw new Error(`nothing at ${String(value.$ref)}`);
  return found as Found;
}

/** Unknown keywords and formats are errors; rules between fields stand beside the fields they name. */
const STRICT = { strict: true, strictTypes: false, strictRequired: false };

export type CompileSchema = (schema: JsonSchema) => ValidateFunction;

/**
 * Compiles schemas that may refer to the document's, equal ones once: most responses of an operation have the schema of
 * another. Throws for one that is not draft 2020-12. Responses may get more fields, but here those that the document does
 * not name are mistakes.
 */
export function createCompiler({ components: { schemas } }: ApiDocument): CompileSchema {
  const ajv = new Ajv2020({ ...STRICT, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema({ $id: NAMED_ID, $defs: withNamedId(schemas) });
  const compiled = new Map<string, ValidateFunction>();
  return (schema) => {
    const key = JSON.stringify(schema);
    const check = compiled.get(key) ?? ajv.compile(withNamedId(schema) as JsonSchema);
    compiled.set(key, check);
    return check;
  };
}

const NAMED_ID = 'https://posthorn.test/schemas';

function withNamedId(schema: object): object {
  const text = JSON.stringify(schema, (_key, value: unknown) => closed(value));
  return JSON.parse(text.replaceAll('"#/components/schemas/', `"${NAMED_ID}#/$defs/`)) as object;
}

function closed(value: unknown): unknown {
  const { type, properties } = (value ?? {}) as JsonSchema;
  const isObject = type === 'object' && typeof properties === 'object';
  return isObject ? { additionalProperties: false, ...(value as object) } : value;
}

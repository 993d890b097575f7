import { isObject, type Json } from '../filter.ts';

/* Places in an OpenAPI document, and the references between them. */

export interface ImportProblem {
  /** From the document on. */
  path: readonly string[];
  message: string;
}

export type Report = (path: readonly string[], message: string) => void;

/** A value of the document, undefined when it has none at this place. */
export interface Part {
  value: Json | undefined;
  path: readonly string[];
}

export const partOf = ({ value, path }: Part, key: string): Part => ({
  value: isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined,
  path: [...path, key],
});

/** References that lead to a reference. */
const MAX_HOPS = 10;
const ELSEWHERE = 'must begin with #/: bundle documents that refer to each other into one first';

/** Follows references within the document. The part has no value when it reports one that leads nowhere. */
export function resolved(part: Part, root: Part, report: Report): Part {
  let found = part;
  for (let hops = 0; hops <= MAX_HOPS; hops += 1) {
    const { $ref } = isObject(found.value) ? found.value : {};
    if (typeof $ref !== 'string') return found;
    const steps = stepsOf($ref);
    const target = steps?.reduce(partOf, root);
    if (target?.value === undefined) {
      report([...found.path, '$ref'], steps ? 'leads to nothing' : ELSEWHERE);
      return { ...found, value: undefined };
    }
    found = target;
  }
  report(part.path, `leads through more than ${MAX_HOPS} references`);
  return { ...part, value: undefined };
}

/** Many webhooks may lead to the same one, and each time it is read again. */
const MAX_REFERENCE_CHARS = 2_048;

/** Returns the keys that a reference leads through in its document; null for one to another document. */
export function stepsOf(reference: string): string[] | null {
  if (!reference.startsWith('#/') || reference.length > MAX_REFERENCE_CHARS) return null;
  try {
    const steps = reference.slice('#/'.length).split('/').map(decodeURIComponent);
    return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  } catch {
    // A % that encodes nothing.
    return null;
  }
}

/** Replaces text of a manifest by Helm's expressions. */
export interface Substitution {
  from: string | RegExp;
  to: string;
}

/** Applies each substitution everywhere. Throws when one finds nothing: the manifest has changed, and the chart would not follow. */
export function substitute(text: string, substitutions: readonly Substitution[]): string {
  return substitutions.reduce((result, { from, to }) => {
    const pattern = typeof from === 'string' ? from : new RegExp(from, 'g');
    // A function, because `$` means something in a replacement text.
    const replaced =
      typeof pattern === 'string'
        ? result.replaceAll(pattern, () => to)
        : result.replace(pattern, (...match: unknown[]) => withGroups(to, match));
    if (replaced === result) throw new Error(`Nothing to replace for ${String(from)}`);
    return replaced;
  }, text);
}

/** Puts the first groups of a match where the text says `<1>` and `<2>`. */
function withGroups(text: string, match: readonly unknown[]): string {
  return text.replaceAll(/<(\d)>/g, (_, group: string) => String(match[Number(group)]));
}

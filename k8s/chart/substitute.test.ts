import { describe, expect, it } from '@jest/globals';
import { substitute } from './substitute.ts';

describe('the replacements that make a template', () => {
  it('apply everywhere, one after the other', () => {
    const substitutions = [
      { from: 'image: posthorn', to: 'image: {{ .Values.image }}' },
      { from: /name: posthorn-(\w+)/, to: 'name: {{ include "name" "<1>" }}' },
    ];
    expect(
      substitute('image: posthorn\nname: posthorn-kafka\nname: posthorn-redis', substitutions),
    ).toBe(
      'image: {{ .Values.image }}\nname: {{ include "name" "kafka" }}\nname: {{ include "name" "redis" }}',
    );
  });

  it('take the text as it is, also what means something in a replacement of JavaScript', () => {
    expect(substitute('a b', [{ from: 'a', to: '$& {{ $root }}' }])).toBe('$& {{ $root }} b');
    expect(substitute('a b', [{ from: /a/, to: '$& $1' }])).toBe('$& $1 b');
  });

  it('fail when the manifest has nothing to replace, so that the chart cannot fall behind', () => {
    const missing = [{ from: 'memory: 256Mi', to: '{{ .Values.memory }}' }];
    expect(() => substitute('memory: 416Mi', missing)).toThrow(
      'Nothing to replace for memory: 256Mi',
    );
  });
});

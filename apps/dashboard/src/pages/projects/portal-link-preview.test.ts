import { expect, test } from '@jest/globals';
import { type LinkDraft, previewOf } from './portal-link-rules.ts';

const DRAFT: LinkDraft = {
  capabilities: ['view', 'resend'],
  minutes: '60',
  path: '',
  name: '',
  logoUrl: '',
  primaryColor: '',
  colorScheme: 'auto',
};

test('the preview says what whoever opens the link may do, and what not', () => {
  expect(previewOf(DRAFT, 'Orders')).toBe(
    'Whoever opens it first, within 1 hour, gets the portal of Orders and sees its webhooks, messages and attempts and sends failed deliveries again. They cannot change webhooks, see secrets or control deliveries. The visit begins at the list of webhooks, and ends at the same time as the link. “Orders” stands above every page.',
  );
});

test('the preview names theme, first page and a colour that cannot be read', () => {
  const themed = {
    ...DRAFT,
    minutes: '2880',
    path: '/messages',
    name: 'Acme',
    colorScheme: 'dark',
  };
  const text = previewOf({ ...themed, primaryColor: '#ffff00' } as LinkDraft, 'Orders');
  expect(text).toContain('within 2 days');
  expect(text).toContain('begins at /messages');
  expect(text).toContain('“Acme” stands above every page. Always dark. White text on this colour');
});

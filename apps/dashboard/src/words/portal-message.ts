/** What the gateway says about API keys and companies, in words for visitors, who know neither. */
const MESSAGES: Readonly<Record<string, string>> = {
  unauthorized: 'This visit has ended.',
  company_mismatch: 'This visit does not belong to this portal.',
  company_suspended: 'The webhooks are closed at present.',
  insufficient_scope: 'Your link to the portal does not allow this.',
  rate_limited: 'There were too many requests.',
  too_many_wrong_keys: 'There were too many wrong requests from your address.',
};

/** Visitors cannot change a setting of the operator. */
const SETTING = / \(QUOTA_\w+\)/;

/** Returns the message of a failure as a visitor of a portal reads it. */
export function portalMessageOf(code: string, message: string): string {
  return Object.hasOwn(MESSAGES, code) ? (MESSAGES[code] ?? '') : message.replace(SETTING, '');
}

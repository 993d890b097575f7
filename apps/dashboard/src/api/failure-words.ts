/**
 * The words for a code; `inPortal` where a visitor, who has no API key and sees one app, needs others, `ofPerson` where somebody
 * who signed in at the issuer does.
 */
interface Words {
  text: string;
  inPortal?: string;
  ofPerson?: string;
}

/** Who reads them. */
export type Reader = 'key' | 'person' | 'visitor';

/** The message of the failure says what to do. */
const NOTHING_MORE: Words = { text: '' };
const OTHER_VERSION: Words = {
  text: 'This page may be of another version than the gateway. Reload it.',
  inPortal: 'This page may be of another version. Reload it.',
};
const CHANGED_ON_THE_WAY: Words = {
  text: 'Something between this page and the gateway may change requests.',
  inPortal: 'Something between this page and its server may change requests.',
};
const WAIT_FOR_STORE: Words = {
  text: 'The gateway waits for one of its stores. Try again in some seconds.',
  inPortal: 'Try again in some seconds.',
};
const TELL_OPERATOR: Words = {
  text: 'Tell the operator, with the request id below.',
  inPortal: 'Tell the site that gave you the link, with the request id below.',
};
const GONE: Words = {
  text: 'It may have been deleted, or belong to another company. Check the id.',
  inPortal: 'It may have been deleted, or belong to another app. Check the id.',
};
const NEW_LINK = {
  text: 'An operator makes a new one, or sign in with an API key.',
  inPortal: 'Open the webhooks from the site that gave you the link: it makes a new one.',
};

const ASK_ADMIN = {
  text: 'Ask an admin of your company in Posthorn.',
  inPortal: 'Ask the site that gave you the link.',
};
const SIGN_IN_AGAIN = {
  text: 'Sign in again.',
  inPortal: 'Open the webhooks again from the site that gave you the link.',
};

/** What to do about each failure of docs/decisions/0004-api-errors.md, behind its message. */
const NEXT_STEPS = {
  invalid_request: NOTHING_MORE,
  invalid_json: NOTHING_MORE,
  incomplete_body: { text: 'The connection broke off. Try again.' },
  chunks_too_small: CHANGED_ON_THE_WAY,
  malformed_request: CHANGED_ON_THE_WAY,
  not_implemented: CHANGED_ON_THE_WAY,
  delivery_refused: NOTHING_MORE,
  unauthorized: {
    text: 'Check that all of the key was copied, and that it was not revoked.',
    inPortal: NEW_LINK.inPortal,
  },
  session_replaced: { text: 'Reload the page to go on with that one.' },
  company_mismatch: {
    text: 'Leave the company id empty: the key knows its company.',
    inPortal: NEW_LINK.inPortal,
  },
  company_suspended: {
    text: 'Ask the operator why.',
    inPortal: 'Ask the site that gave you the link why.',
  },
  insufficient_scope: {
    text: 'Sign in with an API key that has the scope.',
    ofPerson: 'Your role does not include it. Ask an admin of your company in Posthorn.',
    inPortal: 'Ask the site that gave you the link for one that allows it.',
  },
  no_role: {
    text: 'Ask an admin of your company in Posthorn to invite you, or to give one of your groups a role.',
    inPortal: ASK_ADMIN.inPortal,
  },
  groups_unknown: {
    text: 'Assign groups to the application, or use app roles and OIDC_GROUPS_CLAIM=roles. An invited person comes in all the same.',
    inPortal: ASK_ADMIN.inPortal,
  },
  person_disabled: ASK_ADMIN,
  role_by_group: { text: 'Change the groups of the person, or the role of the group.' },
  sign_in_expired: SIGN_IN_AGAIN,
  sign_in_refused: SIGN_IN_AGAIN,
  sign_in_invalid: {
    text: 'Sign in again. When it happens again, the log of the gateway has the reason.',
    inPortal: SIGN_IN_AGAIN.inPortal,
  },
  sign_in_by_key_off: {
    text: 'Sign in at the issuer, or with a one-time link of an operator.',
    inPortal: SIGN_IN_AGAIN.inPortal,
  },
  sign_in_unavailable: {
    text: 'Try again in some seconds. While the issuer is down, an operator makes a one-time link.',
    inPortal: 'Try again in some seconds.',
  },
  not_found: GONE,
  route_not_found: OTHER_VERSION,
  method_not_allowed: OTHER_VERSION,
  link_unknown: NEW_LINK,
  link_used: NEW_LINK,
  link_expired: NEW_LINK,
  link_revoked: NEW_LINK,
  request_timeout: { text: 'The connection was too slow. Try again.' },
  delivery_pending: NOTHING_MORE,
  delivery_final: NOTHING_MORE,
  not_blocked: { text: 'It has been skipped or sent again since.' },
  quota_exceeded: {
    text: 'Delete what is not needed any more, or ask the operator for more.',
    inPortal:
      'Delete what is not needed any more, or ask the site that gave you the link for more.',
  },
  uid_taken: { text: 'Choose another uid, or open what has it.' },
  event_type_exists: { text: 'Choose another name, or change the event type that has it.' },
  too_many_cancellations: { text: 'Wait a minute, until some of them have ended.' },
  resend_running: { text: 'Wait until it has ended, or abort it.' },
  key_of_link: NOTHING_MORE,
  webhook_deleted: { text: 'What was to be delivered there cannot be sent again.' },
  webhook_disabled: NOTHING_MORE,
  payload_erased: {
    text: 'The sender of the message can send it as a new one.',
    inPortal: 'The site that gave you the link can send it as a new message.',
  },
  idempotency_key_running: { text: 'Try again in some seconds.' },
  body_too_large: { text: 'Make it smaller.' },
  unsupported_media_type: OTHER_VERSION,
  expectation_failed: NOTHING_MORE,
  event_type_unknown: { text: 'Add the event type to the catalogue of the project first.' },
  payload_invalid: { text: 'Make the payload as the schema of the event type says.' },
  idempotency_key_reused: NOTHING_MORE,
  rate_limited: { text: 'Wait a moment, then try again.' },
  too_many_wrong_keys: {
    text: 'Wait a minute, then check the key before you try again. A valid key in use keeps working.',
    inPortal: 'Wait a minute, then open the webhooks again from the site that gave you the link.',
  },
  headers_too_large: { text: 'Remove the cookies of this site from the browser.' },
  internal_error: TELL_OPERATOR,
  unavailable: WAIT_FOR_STORE,
} satisfies Record<string, Words>;

/** Returns what to do next about a failure; '' when there is nothing to say. */
export function nextStepOf(code: string, status: number, reader: Reader): string {
  const words: Words = hasWords(code) ? NEXT_STEPS[code] : byStatus(status);
  const { text, inPortal = text, ofPerson = text } = words;
  switch (reader) {
    case 'key':
      return text;
    case 'person':
      return ofPerson;
    case 'visitor':
      return inPortal;
  }
}

export function hasWords(code: string): code is keyof typeof NEXT_STEPS {
  return Object.hasOwn(NEXT_STEPS, code);
}

/** What answers in place of the gateway, such as a proxy, has no code. */
function byStatus(status: number): Words {
  if (status === 503) return WAIT_FOR_STORE;
  return status >= 500 ? TELL_OPERATOR : NOTHING_MORE;
}

/**
 * Why a sign-in at the issuer began no session. The gateway leads back with a code alone: texts of an address could be those of
 * anybody.
 */
const REFUSALS: Readonly<Record<string, string>> = {
  no_role:
    'You have no role in a company here: none of your groups has one, and nobody has invited you.',
  groups_unknown:
    'Your issuer did not send the whole list of your groups, so your role is not known.',
  person_disabled: 'An admin has disabled your access.',
  sign_in_expired: 'The sign-in took longer than ten minutes, or began in another browser.',
  sign_in_refused: 'Your issuer did not sign you in.',
  sign_in_invalid: 'The answer of your issuer could not be verified.',
  sign_in_unavailable: 'Your issuer does not answer.',
  company_suspended: 'The company is suspended.',
  link_unknown: 'There is no such invitation.',
  link_used: 'This invitation was used already.',
  link_expired: 'This invitation has expired.',
  link_revoked: 'This invitation was revoked.',
  too_many_wrong_keys: 'There were too many wrong sign-ins from your address.',
};

/** Returns why a sign-in at the issuer began no session. */
export function refusalMessageOf(code: string): string {
  return Object.hasOwn(REFUSALS, code) ? (REFUSALS[code] ?? '') : 'The sign-in began no session.';
}

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

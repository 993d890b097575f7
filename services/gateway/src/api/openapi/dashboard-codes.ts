/** Of the pages of the dashboard, which are no operations of the API (docs/contract.md C19.5, C20.4). */
export const DASHBOARD_CODES = {
  session_replaced: {
    status: 401,
    when: 'the browser has another session now than the page shows',
    message: 'This browser began another session since, which took the place of this one.',
  },
  link_unknown: {
    status: 404,
    when: 'a link of the dashboard was never made, or was changed',
    message: 'There is no such link. Check that all of it was copied, or ask for another one.',
  },
  link_used: {
    status: 410,
    when: 'a link of the dashboard was used already',
    message: 'This link was used already. It opens once; ask for another one.',
  },
  link_revoked: {
    status: 410,
    when: 'a link of the dashboard was revoked, or the API key that made it',
    message: 'This link was revoked. Ask for another one.',
  },
  link_expired: {
    status: 410,
    when: 'a link of the dashboard has expired',
    message: 'This link has expired. Ask for another one.',
  },
} as const;

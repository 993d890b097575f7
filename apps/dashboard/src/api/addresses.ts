/** Where the dashboard is, such as `/dashboard/`: the gateway writes its own path into `<base href>`. */
export const DASHBOARD_PATH = new URL(document.baseURI).pathname;

/** Where the gateway is, without a slash at the end: `https://posthorn.example` or one with a path. */
export const GATEWAY_URL = new URL('..', document.baseURI).href.replace(/\/$/, '');

const portal = /^portal\/([^/]+)/.exec(location.pathname.slice(DASHBOARD_PATH.length));

/** The company whose portal this page is; null in the dashboard. */
export const PORTAL_COMPANY_ID = portal?.[1] ?? null;

/** What every address of a page begins with. */
export const PAGES_PATH =
  DASHBOARD_PATH + (PORTAL_COMPANY_ID === null ? '' : `portal/${PORTAL_COMPANY_ID}/`);

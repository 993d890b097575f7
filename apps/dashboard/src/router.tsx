import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from '@tanstack/react-router';
import { PAGES_PATH, PORTAL_COMPANY_ID } from './api/addresses.ts';
import { Frame, PageFailed, PageMissing } from './frame/frame.tsx';
import { Loading } from './parts/states.tsx';
import {
  apiKeySearch,
  auditSearch,
  circuitSearch,
  deliverySearch,
  eventTypesSearch,
  failureSearch,
  messageSearch,
  newWebhookSearch,
  overviewSearch,
  peopleSearch,
  resendListSearch,
  sendSearch,
  webhookListSearch,
  webhookSearch,
} from './search.ts';

const root = createRootRoute({ component: Frame, notFoundComponent: PageMissing });
const child = { getParentRoute: () => root };

const overview = createRoute({
  ...child,
  path: '/',
  validateSearch: overviewSearch,
  beforeLoad: () => {
    if (PORTAL_COMPANY_ID !== null) redirect({ to: '/webhooks', throw: true });
  },
  component: lazyRouteComponent(() => import('./pages/overview-page.tsx'), 'OverviewPage'),
});

/** The one-time link leads here; once signed in there is nothing to do. */
const signIn = createRoute({
  ...child,
  path: '/sign-in',
  beforeLoad: () => {
    redirect({ to: '/', throw: true });
  },
});

/** An invitation leads here; the entrance has taken it out of the address. */
const invitation = createRoute({
  ...child,
  path: '/invitation',
  beforeLoad: () => {
    redirect({ to: '/', throw: true });
  },
});

const start = createRoute({
  ...child,
  path: '/start',
  component: lazyRouteComponent(() => import('./pages/start-page.tsx'), 'StartPage'),
});

const projects = createRoute({
  ...child,
  path: '/projects',
  component: lazyRouteComponent(() => import('./pages/projects/projects-page.tsx'), 'ProjectsPage'),
});

const project = createRoute({
  ...child,
  path: '/projects/$projectId',
  component: lazyRouteComponent(() => import('./pages/projects/project-page.tsx'), 'ProjectPage'),
});

const app = createRoute({
  ...child,
  path: '/apps/$appId',
  component: lazyRouteComponent(() => import('./pages/projects/app-page.tsx'), 'AppPage'),
});

const eventTypes = createRoute({
  ...child,
  path: '/event-types',
  validateSearch: eventTypesSearch,
  component: lazyRouteComponent(
    () => import('./pages/event-types/event-types-page.tsx'),
    'EventTypesPage',
  ),
});

const webhooks = createRoute({
  ...child,
  path: '/webhooks',
  validateSearch: webhookListSearch,
  component: lazyRouteComponent(() => import('./pages/webhooks/webhooks-page.tsx'), 'WebhooksPage'),
});

const newWebhook = createRoute({
  ...child,
  path: '/webhooks/new',
  validateSearch: newWebhookSearch,
  component: lazyRouteComponent(
    () => import('./pages/webhooks/new-webhook-page.tsx'),
    'NewWebhookPage',
  ),
});

const webhook = createRoute({
  ...child,
  path: '/webhooks/$webhookId',
  validateSearch: webhookSearch,
  component: lazyRouteComponent(() => import('./pages/webhooks/webhook-page.tsx'), 'WebhookPage'),
});

const messages = createRoute({
  ...child,
  path: '/messages',
  validateSearch: messageSearch,
  component: lazyRouteComponent(() => import('./pages/messages/messages-page.tsx'), 'MessagesPage'),
});

const send = createRoute({
  ...child,
  path: '/messages/new',
  validateSearch: sendSearch,
  component: lazyRouteComponent(() => import('./pages/messages/send-page.tsx'), 'SendPage'),
});

const message = createRoute({
  ...child,
  path: '/messages/$messageId',
  component: lazyRouteComponent(() => import('./pages/messages/message-page.tsx'), 'MessagePage'),
});

const deliveries = createRoute({
  ...child,
  path: '/deliveries',
  validateSearch: deliverySearch,
  component: lazyRouteComponent(() => import('./pages/deliveries-page.tsx'), 'DeliveriesPage'),
});

const failures = createRoute({
  ...child,
  path: '/failures',
  validateSearch: failureSearch,
  component: lazyRouteComponent(() => import('./pages/failures-page.tsx'), 'FailuresPage'),
});

const circuits = createRoute({
  ...child,
  path: '/circuits',
  validateSearch: circuitSearch,
  component: lazyRouteComponent(() => import('./pages/circuits-page.tsx'), 'CircuitsPage'),
});

const resends = createRoute({
  ...child,
  path: '/resends',
  validateSearch: resendListSearch,
  component: lazyRouteComponent(() => import('./pages/resends-page.tsx'), 'ResendsPage'),
});

const resend = createRoute({
  ...child,
  path: '/resends/$resendId',
  component: lazyRouteComponent(() => import('./pages/resend-page.tsx'), 'ResendPage'),
});

const apiKeys = createRoute({
  ...child,
  path: '/api-keys',
  validateSearch: apiKeySearch,
  component: lazyRouteComponent(() => import('./pages/api-keys-page.tsx'), 'ApiKeysPage'),
});

const people = createRoute({
  ...child,
  path: '/people',
  validateSearch: peopleSearch,
  component: lazyRouteComponent(() => import('./pages/people/people-page.tsx'), 'PeoplePage'),
});

const audit = createRoute({
  ...child,
  path: '/audit',
  validateSearch: auditSearch,
  component: lazyRouteComponent(() => import('./pages/audit-page.tsx'), 'AuditPage'),
});

const tree = root.addChildren([
  overview,
  signIn,
  invitation,
  start,
  projects,
  project,
  app,
  eventTypes,
  webhooks,
  newWebhook,
  webhook,
  messages,
  send,
  message,
  deliveries,
  failures,
  circuits,
  resends,
  resend,
  apiKeys,
  people,
  audit,
]);

export const router = createRouter({
  routeTree: tree,
  basepath: PAGES_PATH,
  // Values are text as it is: read as JSON, an external id such as 17 would be a number, and no page would know it.
  parseSearch: (search) => Object.fromEntries(new URLSearchParams(search)),
  stringifySearch,
  defaultPreload: 'intent',
  defaultPendingMs: 0,
  defaultPendingComponent: () => <Loading what="this page" />,
  defaultErrorComponent: PageFailed,
  scrollRestoration: false,
});

function stringifySearch(search: Readonly<Record<string, unknown>>): string {
  const values = Object.entries(search).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  return values.length === 0 ? '' : `?${new URLSearchParams(values).toString()}`;
}

/**
 * Loads the page that the address names, and those that it names until RouterProvider is shown. That one follows the
 * address itself, but misses what happens to it while a page is loading.
 */
export function followAddress(): void {
  const load = (): void => void router.load();
  unfollow = router.history.subscribe(load);
  load();
}

/** To be called once RouterProvider follows the address. */
export function unfollowAddress(): void {
  unfollow();
}

let unfollow = (): void => undefined;

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}

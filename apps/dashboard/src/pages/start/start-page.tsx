import { Text } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { findAppsQuery } from '../../api/find/find-apps.ts';
import { findWebhooksQuery } from '../../api/find/find-webhooks.ts';
import { messagesQuery, projectsQuery } from '../../api/queries.ts';
import { curlOf } from '../../api/recorded-calls.ts';
import { CodeBlock } from '../../parts/copy/code-block.tsx';
import { LinkButton } from '../../parts/link-button.tsx';
import { Page } from '../../parts/page.tsx';
import { Failed } from '../../parts/states.tsx';
import { useSession } from '../../session/session-context.ts';
import { Step } from './step.tsx';
import styles from './start.module.css';

const EXAMPLE_URL = 'https://shop.example/webhooks';

/** From nothing to the first delivered message. Each step knows when it is done. */
export function StartPage() {
  const { company } = useSession();
  const projectsRead = useQuery(projectsQuery);
  const projects = projectsRead.data ?? [];
  const apps = useQuery(findAppsQuery('')).data?.apps ?? [];
  const webhooks = useInfiniteQuery(findWebhooksQuery({})).data?.pages[0]?.data ?? [];
  const messages =
    useInfiniteQuery(messagesQuery({})).data?.pages.flatMap(({ data }) => data) ?? [];
  const projectId = projects[0]?.id ?? 'proj_…';
  const appId = apps[0]?.id ?? 'app_…';
  return (
    <Page title="First steps">
      {projectsRead.error !== null && (
        <Failed error={projectsRead.error} what="find out which steps are done" />
      )}
      <ol className={styles.steps}>
        <Step isDone title="Sign in" next={null}>
          <Text size="sm">You work for the company {company.name}.</Text>
        </Step>
        <ProjectStep isDone={projects.length > 0} />
        <AppStep isDone={apps.length > 0} projectId={projectId} />
        <WebhookStep isDone={webhooks.length > 0} appId={appId} />
        <MessageStep isDone={messages.length > 0} appId={appId} />
      </ol>
    </Page>
  );
}

/** The call of the API that does the same as a step. */
function Curl({ name, path, body }: { name: string; path: string; body: object }) {
  const { company } = useSession();
  const call = { method: 'POST', path: `/api/v1/${path}` };
  return (
    <CodeBlock name={`${name} with curl`} text={curlOf(call, company.id, JSON.stringify(body))} />
  );
}

function ProjectStep({ isDone }: { isDone: boolean }) {
  const next = <LinkButton to="/projects">To the projects</LinkButton>;
  return (
    <Step isDone={isDone} title="Create a project" next={next}>
      <Text size="sm">It groups apps: one for each product, for example.</Text>
      <Curl name="Create a project" path="projects" body={{ name: 'Shop' }} />
    </Step>
  );
}

function AppStep({ isDone, projectId }: { isDone: boolean; projectId: string }) {
  const next = (
    <LinkButton to="/projects/$projectId" params={{ projectId }}>
      To the project
    </LinkButton>
  );
  return (
    <Step isDone={isDone} title="Create an app" next={next}>
      <Text size="sm">
        It is the sender of messages. A platform has one for each of its customers.
      </Text>
      <Curl name="Create an app" path="apps" body={{ name: 'Orders', projectId }} />
    </Step>
  );
}

function WebhookStep({ isDone, appId }: { isDone: boolean; appId: string }) {
  const next = (
    <LinkButton to="/webhooks/new" search={{ appId }}>
      To the new webhook
    </LinkButton>
  );
  return (
    <Step isDone={isDone} title="Create a webhook" next={next}>
      <Text size="sm">It is the URL that gets the messages of the app.</Text>
      <Curl name="Create a webhook" path="webhooks" body={{ appId, url: EXAMPLE_URL }} />
    </Step>
  );
}

function MessageStep({ isDone, appId }: { isDone: boolean; appId: string }) {
  const next = (
    <LinkButton to="/messages/new" search={{ appId }}>
      To the new message
    </LinkButton>
  );
  const body = { appId, eventType: 'order.paid', payload: { order: 17 } };
  return (
    <Step isDone={isDone} title="Send the first message" next={next}>
      <Text size="sm">Its page shows each attempt with the answer of the endpoint.</Text>
      <Curl name="Send a message" path="webhook-messages" body={body} />
    </Step>
  );
}

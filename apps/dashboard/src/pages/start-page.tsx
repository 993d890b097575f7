import { Text, Title } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { messagesQuery } from '../api/messages.ts';
import { findAppsQuery, projectsQuery } from '../api/projects.ts';
import { curlOf } from '../api/recorded-calls.ts';
import { findWebhooksQuery } from '../api/webhooks.ts';
import { LinkButton, Page } from '../parts/page.tsx';
import { Failed } from '../parts/states.tsx';
import { Status } from '../parts/status.tsx';
import { CodeBlock } from '../parts/values.tsx';
import { useSession } from '../session/session-context.ts';
import styles from './start.module.css';

const EXAMPLE_URL = 'https://shop.example/webhooks';

/** From nothing to the first delivered message. Each step knows when it is done. */
export function StartPage() {
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
        <SignInStep />
        <ProjectStep madeId={projects[0]?.id} />
        <AppStep madeId={apps[0]?.id} projectId={projectId} />
        <WebhookStep madeId={webhooks[0]?.id} appId={appId} />
        <MessageStep madeId={messages[0]?.id} appId={appId} />
      </ol>
    </Page>
  );
}

interface CurlProps {
  name: string;
  path: string;
  /** A call without one only reads. */
  body?: object;
}

/** The call of the API that does the same as a step. */
function Curl({ name, path, body }: CurlProps) {
  const call = { method: body === undefined ? 'GET' : 'POST', path: `/api/v1/${path}` };
  const sent = body === undefined ? undefined : JSON.stringify(body);
  return <CodeBlock name={`${name} with curl`} text={curlOf(call, sent)} />;
}

function SignInStep() {
  const { company } = useSession();
  return (
    <Step isDone title="Sign in">
      <Text size="sm">
        You work for the company {company.name}. Programs sign in with each call; this one shows
        that their API key works:
      </Text>
      <Curl name="Sign in" path="projects?limit=1" />
    </Step>
  );
}

interface StepOf {
  /** What the step made; undefined until it is done. */
  madeId: string | undefined;
}

function ProjectStep({ madeId }: StepOf) {
  const next = <LinkButton to="/projects">To the projects</LinkButton>;
  const made = madeId !== undefined && (
    <LinkButton to="/projects/$projectId" params={{ projectId: madeId }} variant="default">
      Open the project
    </LinkButton>
  );
  return (
    <Step isDone={madeId !== undefined} title="Create a project" next={next} made={made}>
      <Text size="sm">It groups apps: one for each product, for example.</Text>
      <Curl name="Create a project" path="projects" body={{ name: 'Shop' }} />
    </Step>
  );
}

function AppStep({ madeId, projectId }: StepOf & { projectId: string }) {
  const next = (
    <LinkButton to="/projects/$projectId" params={{ projectId }}>
      To the project
    </LinkButton>
  );
  const made = madeId !== undefined && (
    <LinkButton to="/apps/$appId" params={{ appId: madeId }} variant="default">
      Open the app
    </LinkButton>
  );
  return (
    <Step isDone={madeId !== undefined} title="Create an app" next={next} made={made}>
      <Text size="sm">
        It is the sender of messages. A platform has one for each of its customers.
      </Text>
      <Curl name="Create an app" path="apps" body={{ name: 'Orders', projectId }} />
    </Step>
  );
}

function WebhookStep({ madeId, appId }: StepOf & { appId: string }) {
  const next = (
    <LinkButton to="/webhooks/new" search={{ appId }}>
      To the new webhook
    </LinkButton>
  );
  const made = madeId !== undefined && (
    <LinkButton to="/webhooks/$webhookId" params={{ webhookId: madeId }} variant="default">
      Open the webhook
    </LinkButton>
  );
  return (
    <Step isDone={madeId !== undefined} title="Create a webhook" next={next} made={made}>
      <Text size="sm">It is the URL that gets the messages of the app.</Text>
      <Curl name="Create a webhook" path="webhooks" body={{ appId, url: EXAMPLE_URL }} />
    </Step>
  );
}

function MessageStep({ madeId, appId }: StepOf & { appId: string }) {
  const next = (
    <LinkButton to="/messages/new" search={{ appId }}>
      To the new message
    </LinkButton>
  );
  const made = madeId !== undefined && (
    <LinkButton to="/messages/$messageId" params={{ messageId: madeId }} variant="default">
      Open the newest message
    </LinkButton>
  );
  const body = { appId, eventType: 'order.paid', payload: { order: 17 } };
  return (
    <Step isDone={madeId !== undefined} title="Send the first message" next={next} made={made}>
      <Text size="sm">Its page shows each attempt with the answer of the endpoint.</Text>
      <Curl name="Send a message" path="webhook-messages" body={body} />
    </Step>
  );
}

interface StepProps {
  title: string;
  isDone: boolean;
  /** Leads to where the step is taken, until it is done. */
  next?: ReactNode;
  /** Leads to what the step made, once it is done. */
  made?: ReactNode;
  children: ReactNode;
}

function Step({ title, isDone, next, made, children }: StepProps) {
  const link = isDone ? made : next;
  return (
    <li className={styles.step}>
      <div className={styles.head}>
        <Title order={2} size="h4">
          {title}
        </Title>
        <Status tone={isDone ? 'good' : 'waiting'}>{isDone ? 'done' : 'to do'}</Status>
      </div>
      {children}
      {link !== undefined && <div>{link}</div>}
    </li>
  );
}

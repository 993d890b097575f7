import { NativeSelect, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/client.ts';
import { type CatalogueOf, catalogueQuery, type ListedEventType } from '../../api/event-types.ts';
import { projectsQuery } from '../../api/projects.ts';
import { FilterBar, FilterInput } from '../../parts/filters.tsx';
import { valueTo } from '../../parts/form-fields.ts';
import { Page, Section } from '../../parts/page.tsx';
import { Empty, QueryView } from '../../parts/states.tsx';
import { type Column, Rows } from '../../parts/table.tsx';
import { Cut } from '../../parts/values.tsx';
import { useRights, useSession } from '../../session/session-context.ts';
import { grouped, isFound } from './catalogue.ts';
import { EventTypePage, TypeState } from './event-type-page.tsx';
import { ImportEventTypes } from './import-event-types.tsx';
import { Policy } from './policy.tsx';

const route = getRouteApi('/event-types');

/** The catalogue of a project; visitors of the portal see that of their app. */
export function EventTypesPage() {
  const { key, portal } = useSession();
  const appId = portal?.app.id ?? key.appId;
  if (appId !== null) return <OneCatalogue of={{ appId }} project={null} />;
  return <CatalogueOfProject />;
}

function CatalogueOfProject() {
  const { projectId } = route.useSearch();
  const query = useQuery(projectsQuery);
  const projects = query.data ?? [];
  const project = projects.find(({ id }) => id === projectId) ?? projects[0];
  if (project === undefined || (projectId !== undefined && project.id !== projectId)) {
    return (
      <Page title="Event types">
        <QueryView query={query} what="the projects">
          {() => <NoProject />}
        </QueryView>
      </Page>
    );
  }
  return <OneCatalogue key={project.id} of={{ projectId: project.id }} project={project} />;
}

const NoProject = () => (
  <Empty title="There is no such project">
    <Text>
      Each project has a catalogue of event types. Go to <Link to="/projects">the projects</Link>.
    </Text>
  </Empty>
);

interface OneCatalogueProps {
  of: CatalogueOf;
  /** Null for the catalogue of an app. */
  project: Schemas['Project'] | null;
}

function OneCatalogue({ of, project }: OneCatalogueProps) {
  const { name } = route.useSearch();
  if (name !== undefined) return <EventTypePage key={name} of={of} name={name} />;
  return <CatalogueList of={of} project={project} />;
}

function CatalogueList({ of, project }: OneCatalogueProps) {
  const { q = '' } = route.useSearch();
  const { canManageProjects } = useRights();
  const query = useQuery(catalogueQuery(of));
  return (
    <Page
      title="Event types"
      actions={project !== null && canManageProjects && <ImportEventTypes projectId={project.id} />}
    >
      <Filters project={project} />
      {project !== null && <Policy project={project} />}
      <QueryView query={query} what="the event types">
        {(types) =>
          types.length === 0 ? (
            <NoEventTypes isOfProject={project !== null} />
          ) : (
            <Groups types={types.filter((type) => isFound(type, q))} />
          )
        }
      </QueryView>
    </Page>
  );
}

function Filters({ project }: Pick<OneCatalogueProps, 'project'>) {
  const { q } = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <FilterBar
      isFiltered={q !== undefined}
      clear={() => void navigate({ search: ({ projectId }) => ({ projectId }), replace: true })}
    >
      {project !== null && <ProjectSelect chosen={project.id} />}
      <FilterInput
        isWide
        label="Find by name, group or description"
        value={q}
        set={(text) =>
          void navigate({
            search: (before) => ({ ...before, q: text || undefined }),
            replace: true,
          })
        }
      />
    </FilterBar>
  );
}

function ProjectSelect({ chosen }: { chosen: string }) {
  const { data: projects = [] } = useQuery(projectsQuery);
  const navigate = route.useNavigate();
  return (
    <NativeSelect
      label="Project"
      data={projects.map(({ id, name }) => ({ value: id, label: name }))}
      value={chosen}
      onChange={valueTo((projectId) => void navigate({ search: { projectId } }))}
    />
  );
}

function NoEventTypes({ isOfProject }: { isOfProject: boolean }) {
  if (!isOfProject) {
    return (
      <Empty title="There are no event types yet">
        <Text>Messages come all the same. Their types are not described here.</Text>
      </Empty>
    );
  }
  return (
    <Empty title="There are no event types yet">
      <Text>
        The catalogue says what messages there are, with a schema and an example of each. Import
        those of an OpenAPI document here, or with <code>posthorn event-type import</code>.
      </Text>
    </Empty>
  );
}

/** What is archived comes last, whatever its group. */
function Groups({ types }: { types: readonly ListedEventType[] }) {
  const current = types.filter(({ archived }) => !archived);
  const archived = types.filter((type) => type.archived);
  if (types.length === 0) return <Text>No event type has this in its name, group or text.</Text>;
  return (
    <>
      {grouped(current).map((group) => (
        <TypeRows key={group.name} title={group.name} types={group.types} />
      ))}
      {archived.length > 0 && <TypeRows title="Archived" types={archived} />}
    </>
  );
}

function TypeRows({ title, types }: { title: string; types: readonly ListedEventType[] }) {
  return (
    <Section title={title}>
      <Rows caption={title} columns={COLUMNS} rows={types} keyOf={({ name }) => name} />
    </Section>
  );
}

const COLUMNS: readonly Column<ListedEventType>[] = [
  { name: 'Event type', cell: ({ name }) => <TypeName name={name} /> },
  { name: 'Description', cell: ({ description }) => <Cut text={description} lines={2} /> },
  { name: 'State', width: 9, cell: (type) => <TypeState type={type} /> },
];

function TypeName({ name }: { name: string }) {
  return (
    <Link to="/event-types" search={(before) => ({ ...before, name })}>
      <strong>
        <Cut text={name} lines={2} />
      </strong>
    </Link>
  );
}

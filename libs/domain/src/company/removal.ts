/** The deletion of a project, an app or a webhook with everything under it. Stored until it is done. */
export interface Removal {
  id: string;
  companyId: string;
  kind: 'project' | 'app' | 'webhook';
  /** Id of the project, app or webhook. It is deleted first, then everything under it. */
  rootId: string;
}

// A file of its own: the Content-Security-Policy of the page forbids inline scripts.
globalThis.SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#page',
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: 'list',
  // Hides the list of all schemas: operations show the ones that they use.
  defaultModelsExpandDepth: 0,
  // Does not send the document to validator.swagger.io.
  validatorUrl: null,
});

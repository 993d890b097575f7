// Beside the page and not in it: the page's Content-Security-Policy forbids inline scripts.
globalThis.SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#page',
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: 'list',
  // Longest first otherwise: the schemas are reached from the operations that use them.
  defaultModelsExpandDepth: 0,
  // No look-up of the document at validator.swagger.io.
  validatorUrl: null,
});

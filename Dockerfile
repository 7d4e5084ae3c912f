# One image for the API, the workers and the migrations; the command says which one a container is.
FROM node:24.21.0-slim AS base
WORKDIR /app

FROM base AS dependencies
COPY package.json package-lock.json ./
# The install scripts would bring a second Node.
RUN npm ci --ignore-scripts --omit=dev

FROM base
ENV NODE_ENV=production
COPY --from=dependencies /app/node_modules node_modules
COPY package.json postern.yaml ./
COPY lua lua
COPY prisma/migrations prisma/migrations
COPY templates templates
COPY src src
COPY web/console web/console
COPY web/dist/postern-code.js web/dist/

# The image's user "node", by number so that Kubernetes can see it is not root.
USER 1000:1000
EXPOSE 3000 9100
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.ADMIN_PORT || 9100}/readyz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "src/main/api.ts"]

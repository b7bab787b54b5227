variable "memory" {
  default = 128
}

job "web" {
  group "web" {
    count = 2
    network {
      port "http" { to = 8080 }
    }
    task "web" {
      driver       = "docker"
      kill_signal  = "SIGQUIT"
      kill_timeout = "20s"
      config {
        image = "web:${attr.cpu.arch}"
        args  = ["-config", "/etc/containerpilot.json5"]
        ports = ["http"]
      }
      env {
        PORT = "${NOMAD_PORT_http}"
      }
      template {
        data        = <<-END
          TOKEN={{ key "web/token" }}
        END
        destination = "secrets/web.env"
        env         = true
      }
      service {
        provider = "nomad"
        check {
          type     = "http"
          path     = "/health"
          interval = "10s"
          timeout  = "2s"
        }
      }
      resources {
        cpu    = 100
        memory = var.memory
      }
    }
  }
}

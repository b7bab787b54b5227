# The same on Nomad: nomad job run nomad.hcl
#
# Every Nomad client already has a Consul agent at the address of its host. Nomad's own `service` blocks are not used:
# containerpilot registers an instance when it is healthy and deregisters it before it is stopped.
job "behind-nginx" {
  datacenters = ["dc1"]

  group "app" {
    count = 2

    # One at a time, and each must have been healthy for a while.
    update {
      max_parallel     = 1
      health_check     = "task_states"
      min_healthy_time = "5s"
    }

    network {
      port "http" {}
    }

    task "app" {
      driver = "docker"

      config {
        image = "behind-nginx-app:latest"
        ports = ["http"]
      }

      # The instance is reached at the address of the host and the port that Nomad has chosen.
      env {
        CONSUL    = "${attr.unique.network.ip-address}"
        PORT      = "${NOMAD_PORT_http}"
        ADVERTISE = "static:${NOMAD_IP_http}"
      }

      # Longer than `stopTimeout` in app/containerpilot.json5.
      kill_timeout = "15s"

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }

  group "nginx" {
    network {
      port "http" {
        static = 8080
        to     = 80
      }
    }

    task "nginx" {
      driver = "docker"

      config {
        image = "behind-nginx-nginx:latest"
        ports = ["http"]
      }

      env {
        CONSUL = "${attr.unique.network.ip-address}"
      }

      kill_timeout = "25s"

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
